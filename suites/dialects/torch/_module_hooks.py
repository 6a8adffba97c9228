"""Modules around generated Functions, with backward hooks that scale what they get, and what is right then."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from operator import itemgetter
from typing import Any

import torch
from hypothesis import strategies as st
from torch.nn.modules import module as of_modules

from autograd_conformance.harness.testing.clauses import ClauseSubject
from autograd_conformance.reference.polynomials import Polynomial
from autograd_conformance.suites.dialects.torch._hooks import passed, times
from autograd_conformance.suites.dialects.torch._leaves import new_leaves, starts_of

KINDS = ("pre-hook", "hook")
GLOBAL: dict[str, Any] = {
    "pre-hook": of_modules.register_module_full_backward_pre_hook,
    "hook": of_modules.register_module_full_backward_hook,
}
# What a module returns of the tuple that a Function returned.
FORMS: dict[str, Any] = {
    "tuple": tuple,
    "tensor": itemgetter(0),
    "named tuple": lambda ys: namedtuple("Outputs", [f"y{i}" for i, _ in enumerate(ys)])(*ys),
}
# The kinds of tensors that do not require grad. What hooks get for them is not documented.
OTHERS = ("fixed", "integers")


@dataclass(frozen=True)
class Hook:
    """A backward hook of a module or of all modules, and the factor by which it scales; None if it returns nothing."""

    kind: str
    factor: int | None = None
    everywhere: bool = False
    prepend: bool = False

    def register(self, module: Any, act: Any) -> Any:
        """Register ``act`` like this, and give the handle."""
        if self.everywhere:
            return GLOBAL[self.kind](act)
        return {"pre-hook": module.register_full_backward_pre_hook, "hook": module.register_full_backward_hook}[
            self.kind
        ](act, prepend=self.prepend)


def hooks_of(
    kinds: Sequence[str], *, everywhere: bool = False, least: int = 1, most: int = 3
) -> st.SearchStrategy[list[Hook]]:
    """Some hooks of these kinds: of one module, or of all modules too and in any place."""
    flag = st.booleans() if everywhere else st.just(False)
    factors = st.sampled_from((None, 2, -1))
    return st.lists(st.builds(Hook, st.sampled_from(kinds), factors, flag, flag), min_size=least, max_size=most)


def in_order(hooks: Sequence[Hook], kind: str) -> list[Hook]:
    """The hooks of a kind in the order in which they run."""
    own: list[Hook] = []
    for hook in hooks:
        if hook.kind == kind and not hook.everywhere:
            own.insert(0 if hook.prepend else len(own), hook)
    return [hook for hook in hooks if hook.kind == kind and hook.everywhere] + own


class Calling(torch.nn.Module):
    """A module that calls a Function with all that it is called with."""

    def __init__(self, function: Any, form: str = "tuple", before: Any = None) -> None:
        super().__init__()
        self.function, self.form, self.before = function, FORMS[form], before

    def forward(self, *args: Any, **named: Any) -> Any:
        if self.before:
            self.before(args)
        return self.form(self.function(*args, *named.values()))


@dataclass
class Called:
    """A module around a generated Function, of whose arguments the first ``positional`` are positional ones.

    Unless ``inputs``, these are given without a history.
    """

    subject: ClauseSubject
    polynomial: Polynomial
    positional: int
    form: str = "tuple"
    before: Any = None
    inputs: bool = True
    leaves: list[Any] = field(default_factory=list)
    module: Any = None

    def __post_init__(self) -> None:
        cls = self.subject.body(self.polynomial)
        self.module = Calling(self.subject.implementation.function(cls), self.form, self.before)
        self.leaves = new_leaves(self.subject, self.polynomial)

    @property
    def tracked(self) -> tuple[int, ...]:
        """The positional arguments that require grad."""
        return tuple(i for i in self.polynomial.tracked if i < self.positional and self.inputs)

    @property
    def reached(self) -> list[int]:
        """The arguments that a pass can be asked for."""
        return [i for i in self.polynomial.tracked if i >= self.positional or self.inputs]

    @property
    def documented(self) -> list[int]:
        """The positional arguments of which the documentation says what hooks get for them."""
        return [i for i in range(self.positional) if self.polynomial.arguments[i] not in OTHERS]

    def outputs(self, prepare: Any = lambda x: x) -> Any:
        """Call the module; ``prepare`` gives the tensors of the call from the leaves."""
        given = dict(zip(self.polynomial.tensors, map(prepare, self.leaves), strict=True))
        if not self.inputs:
            given |= {i: x.detach() for i, x in given.items() if i < self.positional}
        arguments = [given.get(i, value) for i, value in enumerate(self.polynomial.values)]
        named = {f"a{i}": value for i, value in enumerate(arguments[self.positional :])}
        return self.module(*arguments[: self.positional], **named)

    def leaf_of(self, argument: int) -> Any:
        """The leaf that is given for an argument."""
        return self.leaves[self.polynomial.tensors.index(argument)]

    def gradients(self, outputs: Any, cotangents: Sequence[Any], asked: Sequence[int]) -> tuple[Any, ...]:
        """A pass for these arguments, which keeps the graph."""
        ys = (outputs,) if self.form == "tensor" else tuple(outputs)
        starts, given = starts_of(self.subject, self.polynomial, ys, cotangents)
        return torch.autograd.grad(starts, [self.leaf_of(i) for i in asked], given, retain_graph=True)

    @contextmanager
    def hooked(self, hooks: Sequence[Hook]) -> Iterator[tuple[list[Any], list[Any]]]:
        """With these hooks in place: the log that they write, of hooks and what each got, and their handles."""
        log: list[Any] = []
        handles: list[Any] = []
        with ExitStack() as stack:
            for hook in hooks:
                handles.append(hook.register(self.module, partial(self._act, log, hook)))
                stack.callback(handles[-1].remove)
            yield log, handles

    def _act(self, log: list[Any], hook: Hook, module: Any, *values: Any) -> Any:
        what = "whether a hook gets the module that was called"
        self.subject.assert_equal(what, got=module is self.module, expected=True)
        log.append((hook, values))
        return times(values[0], hook.factor)

    def right(self, hooks: Sequence[Hook], cotangents: Sequence[Any], asked: Sequence[int]) -> tuple[Any, Any]:
        """The log that is right for a pass, and the gradients of the arguments that are asked for."""
        pre, after = (in_order(hooks, kind) for kind in KINDS)
        *seen, left = passed(cotangents, [hook.factor for hook in pre])
        gradients = self.polynomial.vjp(left)
        *shown, last = passed(gradients[: self.positional], [hook.factor for hook in after])
        if not set(asked) & set(self.tracked):
            after, last = [], gradients[: self.positional]
        log = [(hook, (values,)) for hook, values in zip(pre, seen, strict=True)]
        log += [(hook, (values, left)) for hook, values in zip(after, shown, strict=False)]
        found = (*last, *gradients[self.positional :])
        return log, [found[i] for i in asked]


def drawn_call(
    subject: ClauseSubject, data: Any, *, before: Any = None, inputs: bool = True, **restrictions: Any
) -> Any:
    """Draw a module; with ``inputs`` one of its positional arguments requires grad, and without none of them."""
    polynomial = subject.polynomial(data, **restrictions)
    first, *_, last = (*polynomial.tracked, polynomial.tracked[-1])
    counts = range(first + 1, len(polynomial.arguments) + 1) if inputs else range(last, -1, -1)
    positional = subject.draw(data, counts, "positional arguments")
    single = ("tensor",) if len(polynomial.outputs) == 1 else ()
    form = subject.draw(data, ("tuple", "named tuple", *single), "what the module returns")
    return Called(subject, polynomial, positional, form, before, inputs)


def asked_of(subject: ClauseSubject, data: Any, call: Called) -> list[int]:
    """Draw the arguments that a pass is asked for."""
    some = st.lists(st.sampled_from(call.reached), min_size=1, unique=True)
    return sorted(subject.draw(data, st.just(call.reached) | some, "arguments asked for"))
