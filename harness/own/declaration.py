"""What a user says of a custom Function, and the Function that the suite checks of it."""

from __future__ import annotations

import inspect
import re
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from autograd_conformance.harness.outcomes import UsageProblem
from autograd_conformance.harness.own.native import Native, adapted
from autograd_conformance.harness.own.oracle import Oracle
from autograd_conformance.implementations.protocol import Implementation, as_tuple
from autograd_conformance.reference.definitions import FLOATING, Array, Function, Static
from autograd_conformance.reference.rounding import Tracked
from autograd_conformance.strategies import descriptors
from autograd_conformance.strategies.descriptors import Arguments, Unreadable

if TYPE_CHECKING:
    from autograd_conformance.harness.marks import Claim
    from autograd_conformance.harness.own.discovery import Facts

# What is checked on request only, and the properties (with the test's variant) that it stands for.
REQUESTS = {
    "vmap": ("BATCH-VMAP",),
    "compile": ("ENV-COMPILE",),
    "autocast": ("ENV-AUTOCAST",),
    "checkpoint": ("ENV-SAVED-HOOKS/checkpoint",),
}
# What a Function's own rule asks for as well: `Function.batching` says whether it does.
_SEEN = ("vmap",)
# Checks that run on devices of their own.
_NEVER = ("ENV-DEVICE", "BATCH-VMAP/cotangents")
# What cannot be said of Functions that draw random numbers, in the order of memory and of calls and once for a batch,
# or of those that hold tensors that require grad.
_NOT_RANDOM = ("FWD-LAYOUT", "ENV-THREADS", "BATCH-VMAP")
_NOT_HOLDING = ("FWD-GRADFLAG",)


@dataclass(frozen=True)
class Factory:
    """An argument that ``make`` builds of a seed: a module with random weights, say."""

    make: Callable[[int], Any]


class Declaration:
    """A custom Function and what its author says of it; what is not said is checked.

    ``function`` is the class, its ``apply``, or any callable. ``arguments`` are texts (see `strategies.descriptors`:
    ``"float[n,m] positive"``, ``"int(0..3)"``, ``"'mean' | 'sum'"``), a `Factory`, an `Array` or a `Static` of
    `reference.definitions`, or any other object, which is then passed as it is.

    * ``reference``: what the outputs should be, as built-in operations of the same tensors or as NumPy of arrays.
    * ``soft``: the gradient is a surrogate, the derivative of this function; ``surrogate=True``: of none.
    * ``backward_only``: it works with ``.backward()``, and not with what returns gradients.
    * ``once``: second derivatives are refused. ``stochastic``: it draws random numbers. ``single_backward``: a graph
      can be used once. ``nonlinear``: the VJP is not linear in the cotangent, on purpose.
    * ``inplace``: positions of the arguments that it changes and returns. ``casts``: outputs have a dtype of their own.
    * ``dtypes``: those that it takes. ``conditioning``: how many times further than usual rounding may put it.
    * ``sizes``: lengths of named dimensions, as in ``{"n": (2, 4)}``. ``also``: what else to check, of vmap (which
      needs no word where the class has a rule for it), compile, autocast, checkpoint. ``implementation``: that of
      which it is a Function.

    Raises UsageProblem for what cannot be meant, with the file and line.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        *arguments: Any,
        name: str = "",
        reference: Callable[..., Any] | None = None,
        soft: Callable[..., Any] | None = None,
        surrogate: bool = False,
        once: bool = False,
        stochastic: bool = False,
        single_backward: bool = False,
        backward_only: bool = False,
        nonlinear: bool = False,
        inplace: int | Sequence[int] = (),
        casts: bool = False,
        dtypes: str | Sequence[str] = (),
        conditioning: float = 1.0,
        sizes: Mapping[str, Sequence[int]] | None = None,
        also: str | Sequence[str] = (),
        implementation: str = "torch",
        where: str = "",
    ) -> None:
        self.function, self.arguments, self.implementation = function, arguments, implementation
        self.name = name or _name_of(function)
        self.reference, self.soft, self.surrogate = reference, soft, surrogate or soft is not None
        self.once, self.stochastic, self.single_backward, self.nonlinear = once, stochastic, single_backward, nonlinear
        self.casts, self.backward_only = casts, backward_only
        self.inplace = (inplace,) if isinstance(inplace, int) else tuple(inplace)
        self.dtypes, self.conditioning = _words(dtypes), conditioning
        self.sizes, self.also = dict(sizes or {}), _words(also)
        self.where = where or _caller()
        self._verify()
        self.parsed = self._parsed()

    def _verify(self) -> None:
        if not callable(self.function) and not hasattr(self.function, "apply"):
            raise self.problem(f"{self.function!r} cannot be called; give a Function class, its apply, or a callable")
        for kind, given, valid in (("request", self.also, REQUESTS), ("dtype", self.dtypes, FLOATING)):
            unknown = [word for word in given if word not in valid]
            if unknown:
                raise self.problem(f"unknown {kind} {unknown[0]!r}; choose from: {', '.join(valid)}")
        if not isinstance(self.conditioning, int | float) or not self.conditioning >= 1:
            raise self.problem(f"conditioning={self.conditioning!r} must be a number, and at least 1")

    def problem(self, message: str) -> UsageProblem:
        """The message, with the place of the declaration."""
        return UsageProblem(f"{self.where}: {self.name}: {message}")

    def _parsed(self) -> Arguments:
        found = Arguments()
        names = parameter_names(self.function, len(self.arguments))
        try:
            for given, name in zip(self.arguments, names, strict=True):
                if isinstance(given, str):
                    found.add(given, name)
                elif isinstance(given, Array | Static):
                    found.take(given)
                elif isinstance(given, Factory):
                    found.found.append(descriptors.made(given.make, name))
                else:
                    found.found.append(descriptors.constant(given, name))
            for name, sides in self.sizes.items():
                found.size(name, sides)
            found.dtypes  # noqa: B018 - raises
        except Unreadable as problem:
            raise self.problem(str(problem)) from None
        if self.dtypes and not set(self.dtypes) & set(found.dtypes):
            raise self.problem(f"dtypes={', '.join(self.dtypes)}: its arguments are of {', '.join(found.dtypes)}")
        wrong = [slot for slot in self.inplace if slot not in range(len(found.found))]
        if wrong:
            raise self.problem(f"inplace={self.inplace}: there is no argument {wrong[0]}")
        return found

    @property
    def candidates(self) -> tuple[str, ...]:
        """The dtypes that the declaration admits; which of them the Function takes is found out."""
        among = self.parsed.dtypes
        return tuple(d for d in (self.dtypes or among) if d in among)

    def source(self) -> tuple[str, str]:
        """Python text that imports the Function as ``Function``, or none and the reason why there is none."""
        owner = getattr(self.function, "__self__", None)
        thing = owner if isinstance(owner, type) else self.function
        name, module = getattr(thing, "__qualname__", ""), sys.modules.get(getattr(thing, "__module__", ""))
        if not re.fullmatch(r"\w+", name) or getattr(module, name, None) is not thing or module is None:
            return "", "the Function is no global name of a module that could be imported"
        path, imported = str(getattr(module, "__file__", "")), module.__name__
        lines = []
        if "." not in imported and path:
            lines = [f"sys.path.insert(0, {str(Path(path).parent)!r})"]
            imported = Path(path).stem if Path(path).stem != "__init__" else imported
        lines.append(f"from {imported} import {name}")
        if isinstance(thing, type):
            return "\n".join([*lines, "", f"Function = {name}", ""]), ""
        return "\n".join([*lines, "", "", "class Function:", f"    apply = staticmethod({name})", "", ""]), ""

    def tests(self, **options: Any) -> type:
        """A class of tests, one for each property, for the user's own pytest suite: ``TestMine = ....tests()``."""
        from autograd_conformance.harness.own.testing import class_of_tests

        return class_of_tests(self, **options)

    def wants(self, claim: Claim) -> bool:
        """Whether a test is for users' Functions, and asked for if it is on request only."""
        if claim.test in _NEVER or claim.simulated or claim.abstract:
            return False
        if self.stochastic and claim.test in _NOT_RANDOM:
            return False
        return all(word in (*self.also, *_SEEN) for word, tests in REQUESTS.items() if claim.test in tests)

    def sketch(self, implementation: Implementation) -> Own:
        """The Function as far as it is known before it was ever called."""
        return Own(
            name=self.name,
            body=lambda *_: native(self.function, implementation),
            arguments=tuple(_seeded(argument, implementation) for argument in self.parsed.found),
            forward=_unknown,
            vjp=_unknown,
            document=self.where,
            exercises="",
            sizes=self.parsed.sizes,
            dtypes=self.candidates,
            surrogate=self.surrogate,
            linear=not self.nonlinear,
            double="once" if self.once else "supported",
            inplace=self.inplace,
            batching="vmap" in self.also or batches(native(self.function, implementation), implementation),
            declaration=self,
        )

    def own(self, implementation: Implementation, facts: Facts) -> Own:
        """The Function with what was found out about it."""
        device = implementation.devices()[0]
        function = self.sketch(implementation)
        mine = adapted(implementation, self)
        cls = function.body(None, None)

        def oracle(f: Callable[..., Any]) -> Oracle:
            return Oracle(
                mine, f, function.arguments, outputs=[o.differentiable for o in facts.outputs],
                dtype=facts.dtypes[0], device=device, conditioning=self.conditioning,
            )  # fmt: skip

        plain = oracle(mine.function(cls))
        given = oracle(self.reference) if self.reference is not None and facts.composite else plain
        forward = given.forward
        if self.reference is not None and not facts.composite:
            forward = _numpy_forward(self.reference, plain)
        return replace(
            function,
            forward=forward,
            vjp=given.vjp,
            jvp=given.jvp if _overrides(cls, implementation, "jvp") else None,
            soft=oracle(self.soft).forward if self.soft is not None else None,
            outputs=facts.outputs,
            dtypes=facts.dtypes,
            materialize=facts.materialize,
            devices=implementation.devices(),
            sees_inside=not isinstance(cls, Native),
            holds_others=facts.holds_others,
            on=mine,
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class Own(Function):
    """A user's Function: ``declaration`` says where it comes from, ``on`` is the implementation as it wants it.

    ``sees_inside`` says whether it is a class, in whose forward and backward can be looked, ``holds_others`` whether
    tensors that are no arguments require grad inside, those of a module for example.
    """

    declaration: Declaration
    sees_inside: bool = True
    holds_others: bool = False
    on: Implementation | None = field(default=None, repr=False)

    def wants(self, claim: Claim) -> bool:
        """Whether a test is for this Function."""
        return self.declaration.wants(claim) and not (self.holds_others and claim.test in _NOT_HOLDING)


def native(function: Any, implementation: Implementation) -> Any:
    """The custom Function class behind what the user gave, or what calls it."""
    base = getattr(implementation.ag, "Function", None)
    for given in (function, getattr(function, "__self__", None)):
        if isinstance(given, type) and isinstance(base, type) and issubclass(given, base):
            return given
    return Native(function)


def _seeded(argument: Array | Static, implementation: Implementation) -> Array | Static:
    """The argument; one that is made of a seed with the framework's random numbers seeded as well."""
    if isinstance(argument, Array) or argument.build is None or len(argument.choices(())) == 1:
        return argument
    make, lock = argument.build, threading.Lock()
    known: dict[int, Any] = {}

    def build(seed: int) -> Any:
        # One object for a seed: calls of several threads would draw random numbers in each other's midst.
        with lock:
            if seed not in known:
                implementation.reseed(seed)
                known[seed] = make(seed)
            return known[seed]

    return replace(argument, build=build)


def batches(cls: Any, implementation: Implementation) -> bool:
    """Whether a Function class has a rule for vmap, its own or a generated one."""
    return bool(getattr(cls, "generate_vmap_rule", False)) or _overrides(cls, implementation, "vmap")


def _overrides(cls: Any, implementation: Implementation, method: str) -> bool:
    return hasattr(cls, method) and getattr(cls, method) is not getattr(implementation.ag.Function, method, None)


def _unknown(*_: Any) -> Any:
    raise AssertionError("nothing is known of the Function yet")


def _numpy_forward(reference: Callable[..., Any], plain: Oracle) -> Callable[..., tuple[Any, ...]]:
    """The user's NumPy reference for the values, with the bounds of the plain call."""

    def forward(*given: Any) -> tuple[Any, ...]:
        values = [x.value if isinstance(x, Tracked) else x for x in given]
        with np.errstate(all="ignore"):
            found = as_tuple(reference(*values))
        near = plain.forward(*given)
        return tuple(b.around(y) if isinstance(b, Tracked) else y for y, b in zip(found, near, strict=True))

    return forward


def parameter_names(function: Any, count: int) -> list[str]:
    """The names of the arguments, as the forward has them where that can be seen."""
    owner = getattr(function, "__self__", function)
    forward = getattr(owner, "forward", None) if isinstance(owner, type) else function
    try:
        found = [
            p for p in inspect.signature(forward).parameters.values()  # type: ignore[arg-type]
            if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
        ]  # fmt: skip
    except (TypeError, ValueError):
        found = []
    required = [p for p in found if p.default is p.empty]
    found = found[1:] if [p.name for p in found[:1]] == ["ctx"] or len(required) == count + 1 else found
    fits = len(found) >= count >= sum(p.default is p.empty for p in found)
    return [p.name for p in found[:count]] if fits else [f"argument{n}" for n in range(count)]


def _words(given: str | Sequence[str]) -> tuple[str, ...]:
    return tuple(word.strip() for word in ([given] if isinstance(given, str) else given))


def _name_of(function: Any) -> str:
    owner = getattr(function, "__self__", None)
    named = owner if isinstance(owner, type) else function
    text = getattr(named, "__name__", type(named).__name__)
    return re.sub(r"\W+", "_", text).strip("_") or "Function"


def _caller() -> str:
    """File and line outside of this package in which a declaration is made."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("autograd_conformance."):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"
