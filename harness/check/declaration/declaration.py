"""The declaration of a user's Function, and the Function that the suite makes of it."""

from __future__ import annotations

import copy
import re
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from autograd_conformance.harness.check.declaration import interpreted
from autograd_conformance.harness.check.declaration.calling import Native, Treatment, adapted, orderly
from autograd_conformance.harness.check.declaration.classes import batches, has_jvp, native
from autograd_conformance.harness.check.declaration.declared_relations import relations
from autograd_conformance.harness.check.declaration.facts import Facts
from autograd_conformance.harness.check.declaration.freedom import Canonical, within
from autograd_conformance.harness.check.declaration.naming import (
    KEYWORDS,
    Notation,
    caller,
    importing,
    name_of,
    parameter_names,
    words,
)
from autograd_conformance.harness.check.declaration.served import unserved
from autograd_conformance.harness.check.oracle.oracle import Oracle
from autograd_conformance.harness.check.oracle.user_reference import Referee, of_values
from autograd_conformance.harness.outcomes import UsageProblem, choose_from
from autograd_conformance.harness.testing.relations import Relation
from autograd_conformance.harness.testing.source import Source
from autograd_conformance.implementations.protocol import Implementation
from autograd_conformance.reference.definitions import FLOATING, Array, Function, Static
from autograd_conformance.reference.properties import PROPERTIES
from autograd_conformance.strategies import descriptors, drawn
from autograd_conformance.strategies.descriptors import Arguments, Unreadable

if TYPE_CHECKING:
    from autograd_conformance.harness.testing.marks import Claim

# What is checked on request only, and the tests (property, with variant) that each request adds.
REQUESTS = {
    "vmap": ("BATCH-VMAP",),
    "compile": ("ENV-COMPILE",),
    "autocast": ("ENV-AUTOCAST",),
    "checkpoint": ("ENV-SAVED-HOOKS/checkpoint",),
}
# Requests that a Function can also make itself, by defining a rule: see `Function.batching`.
_SEEN = ("vmap",)
# Tests that users' Functions never get. One that builds all pairs cannot take a million elements: see lengths.py.
# At numbers that are not finite or overflow, only VJP-FINITE knows which results to expect of a user's Function.
_NEVER = (
    "ENV-DEVICE",
    "BATCH-VMAP/cotangents",
    *(f"{id}/{variant}" for id in ("FWD-VALUE", "VJP-REF") for variant in ("sizes", "specials")),
)


@dataclass(frozen=True)
class Factory:
    """An argument that `make` builds from a seed, for example a module with random weights."""

    make: Callable[[int], Any]


class Declaration:
    """A custom Function, with what its author says about it. What is not declared is checked.

    Args:
        function: The Function class, its `apply`, or any callable.
        *arguments: The arguments, in order. Each is a text such as `"float[n,m] positive"`, `"int(0..3)"` or
            `"'mean' | 'sum'"`, a Hypothesis strategy, a `Factory`, an `Array` or `Static` of `reference.definitions`,
            or any other object, which is passed as it is. The texts are described in `strategies.descriptors`.
        name: The name in reports. The default is the name of the class or callable.
        reference: A callable that computes the expected outputs: from the same tensors with built-in operations, or
            from arrays with NumPy.
        soft: The function whose derivative backward computes, if that is not the forward.
        surrogate: Whether backward is, on purpose, not the derivative of the forward. `soft` implies it.
        once: Whether it raises when it is differentiated twice.
        stochastic: Whether it draws random numbers.
        single_backward: Whether backward can run only once for each call.
        backward_only: Whether it works with `.backward()`, but not with functions that return gradients.
        nonlinear: Whether backward is, on purpose, not linear in the gradient that it gets.
        up_to: If its results are not unique, a callable `canonical(outputs, inputs)` that maps all equally right ones
            to the same, differentiably; `signs` makes one for signs of columns, as in `eigh`.
        independent: Names of dimensions, or `"..."`: the results for a slice along one are the slice of the results.
        symmetric: The positions of tensor arguments that can be exchanged without a change of the outputs.
        antisymmetric: The positions of tensor arguments of which an exchange of two changes the sign of the outputs.
        inplace: The positions of the arguments that it changes in place and returns.
        casts: Whether outputs have, on purpose, another dtype than the inputs.
        dtypes: The dtypes that it takes. The default is every dtype with which a few calls succeed.
        examples: The share of the profile's examples. The default is all, or fewer if `check` finds that a call takes
            long, which may depend on the machine.
        conditioning: A factor, at least 1, on all error bounds. Raise it if the Function is ill-conditioned.
        sizes: The lengths of named dimensions, for example `{"n": (2, 4)}`.
        also: Checks to add, out of `"vmap"`, `"compile"`, `"autocast"` and `"checkpoint"`. A class with a vmap rule is
            checked under vmap in any case.
        implementation: What it is written for: `torch`, `model`, or what `run` takes for an adapter of your own.
        where: The place shown in messages. The default is the file and line of the declaration.

    Raises:
        UsageProblem: If the declaration contradicts itself or cannot be read. The message has the file and line.
    """

    # How messages write what is declared.
    notation: Notation = KEYWORDS

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
        up_to: Canonical | None = None,
        independent: str | Sequence[str] = (),
        symmetric: Sequence[int] = (),
        antisymmetric: Sequence[int] = (),
        inplace: int | Sequence[int] = (),
        casts: bool = False,
        dtypes: str | Sequence[str] = (),
        examples: float | None = None,
        conditioning: float = 1.0,
        sizes: Mapping[str, Sequence[int]] | None = None,
        also: str | Sequence[str] = (),
        implementation: str = "torch",
        where: str = "",
    ) -> None:
        # The options, as they were given.
        self.given = {word: value for word, value in locals().items() if word not in ("self", "function", "arguments")}
        self.function, self.arguments, self.implementation = function, arguments, implementation
        self.name = name or name_of(function)
        self.reference, self.soft, self.surrogate = reference, soft, surrogate or soft is not None
        self.once, self.stochastic, self.single_backward, self.nonlinear = once, stochastic, single_backward, nonlinear
        self.casts, self.backward_only = casts, backward_only
        self.independent, self.symmetric, self.antisymmetric = words(independent), symmetric, antisymmetric
        # Whether it was found to draw random numbers, though that was not declared.
        self.undeclared = False
        self.inplace = (inplace,) if isinstance(inplace, int) else tuple(inplace)
        self.dtypes, self.conditioning, self.examples = words(dtypes), conditioning, examples
        self.sizes, self.also = dict(sizes or {}), words(also)
        self.where = where or caller()
        self.up_to = up_to
        self._verify()
        self.parsed = self._parsed()
        try:
            self.relations = relations(
                self.parsed, self.independent, self.symmetric, self.antisymmetric,
                stochastic=stochastic, notation=self.notation,
            )  # fmt: skip
        except ValueError as problem:
            raise self.problem(str(problem)) from None

    def _verify(self) -> None:
        if not callable(self.function) and not hasattr(self.function, "apply"):
            raise self.problem(f"{self.function!r} is not callable; pass a Function class, its apply, or a callable")
        for kind, given, valid in (("request", self.also, REQUESTS), ("dtype", self.dtypes, FLOATING)):
            unknown = [word for word in given if word not in valid]
            if unknown:
                raise self.problem(f"unknown {kind} {unknown[0]!r}; {choose_from(unknown[0], valid)}")
        if unserved(self.implementation):
            raise self.problem(unserved(self.implementation))
        if self.up_to is not None and not callable(self.up_to):
            raise self.problem(f"up_to={self.up_to!r} is not callable; give canonical(outputs, inputs)")
        if self.up_to is not None and self.inplace:
            both = " and ".join(map(self.notation.word, ("up_to", "inplace")))
            raise self.problem(f"{both} cannot be combined: what is compared is not what it returns")
        if not isinstance(self.conditioning, int | float) or not self.conditioning >= 1:
            raise self.problem(f"conditioning={self.conditioning!r} must be a number, and at least 1")
        if self.examples is not None and not (isinstance(self.examples, int | float) and 0 < self.examples <= 1):
            said = self.notation.said("examples", self.examples)
            raise self.problem(f"{said} must be a share of the examples: a number above 0, and at most 1")

    def call(self, *given: Any) -> Any:
        """The Function's outputs for these arguments; in canonical form if something is free in them."""
        # A layer is called itself: its `apply` is something else.
        direct = callable(self.function) and not isinstance(self.function, type)
        function = self.function if direct else getattr(self.function, "apply", self.function)
        return orderly()(within(function, self.up_to))(*given)

    def problem(self, message: str) -> UsageProblem:
        """A `UsageProblem` with the message and the place of the declaration."""
        return UsageProblem(f"{self.placed}: {message}")

    @property
    def placed(self) -> str:
        """The place of the declaration, with its name."""
        return self.notation.placed(self.where, self.name)

    def _parsed(self) -> Arguments:
        found = Arguments()
        names = parameter_names(self.function, len(self.arguments), self.implementation)
        try:
            for given, name in zip(self.arguments, names, strict=True):
                if isinstance(given, str):
                    found.add(given, name)
                elif drawn.is_strategy(given):
                    found.draw(given, name)
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
            said = self.notation.said("dtypes", ",".join(self.dtypes))
            raise self.problem(f"{said} does not fit its arguments, which are {', '.join(found.dtypes)}")
        wrong = [slot for slot in self.inplace if slot not in range(len(found.found))]
        if wrong:
            raise self.problem(f"{self.notation.said('inplace', self.inplace)}: there is no argument {wrong[0]}")
        return found

    @property
    def treatment(self) -> Treatment:
        """How the Function must be called."""
        # .backward() frees the graph.
        fresh = self.backward_only or self.single_backward
        return Treatment(seeded=self.stochastic, fresh=fresh, backward_only=self.backward_only)

    def drawing(self) -> Declaration:
        """The declaration of a Function that was found to draw random numbers."""
        found = copy.copy(self)
        found.stochastic = found.undeclared = True
        return found

    @property
    def untreated(self) -> Treatment:
        """The treatment without `stochastic` and `single_backward`, for a test whether these are needed."""
        return Treatment(fresh=self.backward_only, backward_only=self.backward_only)

    @property
    def candidates(self) -> tuple[str, ...]:
        """The dtypes that the declaration admits, the most precise first. Discovery finds out which of them work."""
        return tuple(d for d in self.parsed.dtypes if not self.dtypes or d in self.dtypes)

    def source(self, composite: bool = True, referred: bool = True) -> Source | str:
        """How a script imports the Function, or the reason why it cannot.

        ``composite`` says whether its reference, if it has one, takes tensors. ``referred`` says whether that counts.
        """
        own, mine = self._global(), self._imported()
        compared = (referred and composite and self.reference is not None) or self.soft is not None
        if own is None and mine is None:
            return "neither the Function nor its declaration is a global name of a module that a script could import"
        needs = {"what is free in the results (up_to=)": self.up_to, "what results are compared with": compared}
        for what, has in needs.items():
            if has and not mine:
                return f"the declaration, which has {what}, is not a global name of a module"
        declared = mine[1] if mine else ""
        lines, called = own or ("", f"{declared}.function" + ".apply" * isinstance(self.function, type))
        needed = own is None or compared or bool(self.up_to) or not all(map(drawn.is_printed, self.arguments))
        texts = [lines, *([mine[0]] if mine and needed else [])]
        referred = referred and self.reference is not None
        return Source(
            "".join(f"{row}\n" for row in dict.fromkeys(row for text in texts for row in text.splitlines())),
            f"{declared}.call" if self.up_to else called,
            call=self.call,
            declaration=declared,
            given=self.arguments,
            reference=f"{declared}.reference" if composite and referred else "",
            soft=f"{declared}.soft" if self.soft is not None else "",
            literal_outputs=referred and not composite,
            backward_only=self.backward_only,
        )

    def _global(self) -> tuple[str, str] | None:
        """The lines that import the Function, and how a script calls it, if it is a global name of a module."""
        owner = getattr(self.function, "__self__", None)
        thing = owner if isinstance(owner, type) else self.function
        name, module = getattr(thing, "__qualname__", ""), sys.modules.get(getattr(thing, "__module__", ""))
        if re.fullmatch(r"\w+", name) and module is not None and getattr(module, name, None) is thing:
            return importing(module, name), name + ".apply" * isinstance(thing, type)
        located = self.located()
        return located and (located[0], located[1] + ".apply" * isinstance(self.function, type))

    def located(self) -> tuple[str, str] | None:
        """The lines that import the Function, and its name there, if more is known than what it says of itself."""
        return None

    def _imported(self) -> tuple[str, str] | None:
        """The lines that import the declaration, and its name there."""
        path = self.where.rpartition(":")[0]
        modules = [m for m in list(sys.modules.values()) if getattr(m, "__file__", None) == path]
        found = [(m, name) for m in modules for name, value in list(vars(m).items()) if value is self]
        return (importing(*found[0]), found[0][1]) if found else None

    def wants(self, claim: Claim) -> bool:
        """Whether a test applies to users' Functions, and is requested if it runs on request only."""
        if claim.test in _NEVER or claim.simulated or claim.abstract:
            return False
        if self.stochastic and not PROPERTIES[claim.property_id].of_stochastic:
            return self.undeclared and claim.property_id == "ENV-RANDOM"
        return all(word in (*self.also, *_SEEN) for word, tests in REQUESTS.items() if claim.test in tests)

    def _fitting(self, implementation: Implementation) -> tuple[str, ...]:
        """The dtypes to try: those of its parameters, if it holds any and no others are declared."""
        held = () if self.dtypes else implementation.held_dtypes(self.function)
        return tuple(d for d in self.candidates if d in held) or self.candidates

    def sketch(self, implementation: Implementation) -> Own:
        """The Function as far as it is known before its first call."""
        interpreted.one_kernel_at_a_time()
        if isinstance(self.function, type) and isinstance(native(self.function, implementation), Native):
            name = self.function.__name__
            raise self.problem(f"{name} is a class, but no Function of {implementation.name}; give an instance of it")
        return Own(
            name=self.name,
            body=lambda *_: native(self.function, implementation),
            arguments=tuple(_seeded(argument, implementation) for argument in self.parsed.found),
            forward=_unknown,
            vjp=_unknown,
            document=self.where,
            exercises="",
            sizes=self.parsed.sizes,
            shapes=self.parsed.shapes,
            dtypes=self._fitting(implementation),
            surrogate=self.surrogate,
            linear=not self.nonlinear,
            double="once" if self.once else "supported",
            inplace=self.inplace,
            batching="vmap" in self.also or batches(native(self.function, implementation), implementation),
            declaration=self,
        )

    def own(self, implementation: Implementation, facts: Facts) -> Own:
        """The Function, given the facts that `discover` found."""
        if facts.draws and not self.stochastic:
            return self.drawing().own(implementation, facts)
        device = implementation.devices()[0]
        function = self.sketch(implementation)
        cls, canonical = function.body(None, None), self.up_to
        mine = adapted(implementation, self.treatment, cls, len(facts.outputs), canonical)

        def oracle(f: Callable[..., Any], dtype: str = facts.dtypes[0]) -> Oracle:
            return Oracle(
                mine, f, function.arguments, outputs=[o.differentiable for o in facts.outputs], dtype=dtype,
                device=device, conditioning=self.conditioning, normwise=bool(self.up_to),
            )  # fmt: skip

        plain = oracle(mine.function(cls))
        referee, second = None, None
        if self.reference is not None and facts.composite:
            given = oracle(within(self.reference, canonical), facts.refers_in or facts.dtypes[0])
            referee = Referee(plain, given.forward, None if self.surrogate else given.vjp)
            if facts.refers_in and not self.surrogate:
                second = given.second
        elif self.reference is not None:
            referee = Referee(plain, of_values(self.reference))
        # Finite differences of a reference are as good as those of the forward, and often more precise.
        soft = referee.forward if referee is not None and not self.surrogate else None
        softened = oracle(within(self.soft, canonical)) if self.soft is not None else None
        # The tangents of a surrogate are as free as its gradients.
        sloped = softened if self.surrogate else plain
        return replace(
            function,
            forward=plain.forward,
            vjp=plain.vjp,
            jvp=sloped.jvp if sloped is not None and has_jvp(cls, implementation) else None,
            soft=softened.forward if softened is not None else soft,
            referee=referee,
            second=second,
            devices=implementation.devices(),
            sees_inside=not isinstance(cls, Native),
            on=mine,
            outputs=facts.outputs,
            dtypes=facts.dtypes,
            materialize=facts.materialize,
            computes_in=facts.computes_in,
            comes_back=facts.comes_back,
            facts=facts,
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class Own(Function):
    """A user's Function.

    ``on`` is the implementation that calls it as its `Treatment` says, and ``referee`` its reference. ``sees_inside``
    says whether it is a class, whose forward and backward can be observed. ``facts`` are what discovery found out.
    """

    declaration: Declaration
    referee: Referee | None = field(default=None, repr=False)
    sees_inside: bool = True
    facts: Facts = field(default_factory=Facts, repr=False)
    on: Implementation | None = field(default=None, repr=False)
    # What the bench remembers of its calls.
    known: dict[Any, Any] = field(default_factory=dict, init=False, repr=False)

    @cached_property
    def declined(self) -> frozenset[str]:
        """The kinds of calls that are declared and forward refuses."""
        return frozenset(kind for each in self.facts.declined for kind in each.kinds)

    @cached_property
    def as_referred(self) -> Function:
        """The Function with the results of its reference, where only that takes more than half precision."""
        referee = self.referee
        if referee is None or not self.facts.refers_in:
            return self
        return replace(self, forward=referee.forward, vjp=referee.vjp)

    @property
    def relations(self) -> Mapping[str, Relation]:
        """What the declaration promises of other calls, by the property that is about it."""
        return self.declaration.relations

    def wants(self, claim: Claim) -> bool:
        """Whether a test applies to this Function."""
        holds = not self.facts.holds_others or PROPERTIES[claim.property_id].of_holding
        # Outputs of other sizes have no average.
        averaged = self.facts.resizes and claim.variant == "averages"
        return self.declaration.wants(claim) and holds and not averaged


def _seeded(argument: Array | Static, implementation: Implementation) -> Array | Static:
    """The argument. If it is built from a seed, the framework's random numbers are seeded before."""
    if isinstance(argument, Array) or argument.build in (None, copy.deepcopy) or len(argument.choices(())) == 1:
        return argument
    make, lock = argument.build, threading.Lock()
    known: dict[int, Any] = {}

    def build(seed: int) -> Any:
        # One object for each seed: threads that build at the same time would share one stream of random numbers.
        with lock:
            if seed not in known:
                implementation.reseed(seed)
                known[seed] = make(seed)
            return known[seed]

    return replace(argument, build=build)


def _unknown(*_: Any) -> Any:
    raise AssertionError("this Function was not called yet, so it has no reference")
