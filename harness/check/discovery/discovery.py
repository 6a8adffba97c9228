"""Discovery: the facts about a user's Function that a few calls show, so that nobody has to declare them.

`PROBES` has them, each with what it needs to know before, and a function.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from autograd_conformance.harness.check.bench import Bench
from autograd_conformance.harness.check.bounds.builtin_autograd import gradients_of_formula
from autograd_conformance.harness.check.bounds.sweeping import largest_errors, maps_entries
from autograd_conformance.harness.check.declaration.calling import Native
from autograd_conformance.harness.check.declaration.classes import batches, has_jvp
from autograd_conformance.harness.check.declaration.declaration import REQUESTS, Declaration
from autograd_conformance.harness.check.declaration.facts import Declined, Facts
from autograd_conformance.harness.check.discovery import cost, fitting
from autograd_conformance.harness.check.discovery.coarseness import coarse
from autograd_conformance.harness.check.discovery.long_tensors import long_shapes
from autograd_conformance.harness.check.discovery.nondeterminism import draws, reads_new_memory
from autograd_conformance.harness.check.discovery.references import composite_reference, refers_in
from autograd_conformance.harness.check.discovery.resizing import resizes
from autograd_conformance.harness.check.discovery.returned import Returned, least_precise, ones, returned
from autograd_conformance.harness.check.discovery.staleness import stale
from autograd_conformance.harness.check.discovery.trials import TRIED, Trials
from autograd_conformance.harness.check.oracle.oracle import Oracle
from autograd_conformance.harness.check.refusals.declined import declined
from autograd_conformance.harness.check.refusals.layouts import refused_layouts
from autograd_conformance.harness.check.refusals.refused import emptied
from autograd_conformance.harness.testing.example import Example
from autograd_conformance.harness.testing.own_faults import noticed, taken
from autograd_conformance.harness.testing.settings import kept
from autograd_conformance.harness.testing.subject import Subject
from autograd_conformance.implementations.protocol import Implementation
from autograd_conformance.reference.definitions import REAL_OF, Output, Shapes
from autograd_conformance.strategies.calls import Call, Cotangent, recast
from autograd_conformance.strategies.simple import simple_call

_DOUBLE = ("float64", "complex128")


@dataclass(frozen=True)
class Asked:
    """What discovery is asked to find out, and what it is told.

    ``without`` has the dtypes that the Function is known not to take, with the reason. ``note`` gets each call before
    it runs. With ``empty`` tensors without elements are tried. With ``errors`` the largest errors over all numbers of
    half precision are measured, too: they are only shown. If it is ``timed``, a slow Function gets fewer examples.
    """

    without: Mapping[str, str]
    note: Callable[[Call], None]
    errors: bool
    empty: bool
    timed: bool


def discover(
    declaration: Declaration,
    implementation: Implementation,
    *,
    without: Mapping[str, str] | None = None,
    note: Callable[[Call], None] = lambda _: None,
    errors: bool = True,
    empty: bool = True,
    timed: bool = False,
) -> Facts:
    """Call the Function on a few simple arguments, as `Asked` says.

    Raises UsageProblem if it does not fit its declaration.
    """
    asked = Asked(dict(without or {}), note, errors, empty, timed)
    with kept(implementation):
        found = _discovered(declaration, implementation, asked)
    return replace(found, own_faults=tuple(taken()))


def _discovered(declaration: Declaration, implementation: Implementation, asked: Asked) -> Facts:
    trials = Trials(declaration, implementation, asked.without, asked.note)
    if not declaration.stochastic and any(draws(trials.subject.made(call)) for call in trials.simple):
        again = replace(asked, without=trials.refused)
        return replace(_discovered(declaration.drawing(), implementation, again), draws=True)
    known, facts = Known(trials, asked), dict[str, Any]()
    for probe in PROBES:
        if not any(needs(known) for needs in probe.unless):
            facts[probe.fact] = probe.ask(known)
    return Facts(**facts)


class Known:
    """What is known of a Function once it has been tried: the same for all probes, each found out when it is needed."""

    def __init__(self, trials: Trials, asked: Asked) -> None:
        self.trials, self.asked, self.declaration = trials, asked, trials.declaration
        self.implementation, self.dtypes, self.outputs = trials.implementation, trials.dtypes, trials.outputs
        self.first = recast(trials.working[0], self.dtypes[0], trials.function)
        self.untreated = trials.treated(self.declaration.untreated)
        subject = trials.subject
        self.oracle = Oracle(
            subject.implementation, subject.implementation.function(subject.cls), trials.function.arguments,
            outputs=[o.differentiable for o in self.outputs], dtype=self.dtypes[0], device=subject.device,
        )  # fmt: skip
        fitting.verify_soft(self.declaration, subject.made(self.first))
        fitting.verify_inplace(self.declaration, list(map(subject.made, trials.simple)))
        self.composite = composite_reference(self.declaration, subject, trials.simple, len(self.outputs))
        self.examples = [self.untreated.made(call) for call in trials.simple]
        so_far = Facts(self.outputs, self.dtypes, composite=self.composite)
        self.own = replace(
            trials.function, forward=self.oracle.forward, vjp=self.oracle.vjp, outputs=self.outputs,
            dtypes=self.dtypes, facts=so_far,
        )  # fmt: skip
        self.subject = replace(subject, function=self.own)
        self.bench = Bench(self.subject)
        fitting.verify_relations(self.declaration, self.made)

    @property
    def made(self) -> list[Example]:
        """The simple calls with their tensors, and a cotangent for each output."""
        return [self.subject.made(replace(call, cotangents=self._cotangents)) for call in self.trials.simple]

    @property
    def _cotangents(self) -> tuple[Cotangent | None, ...]:
        return tuple(Cotangent() if output.differentiable else None for output in self.outputs)

    @cached_property
    def coarse(self) -> list[str]:
        """The results in double precision whose numbers are all of single precision."""
        wide = next((d for d in self.dtypes if d in _DOUBLE), None)
        if wide is None or self.declaration.surrogate:
            return []
        return coarse([self.subject.made(recast(call, wide, self.own)) for call in self.trials.working[:TRIED]])

    @cached_property
    def computes_in(self) -> str:
        """The precision of what forward returns for calls in the most precise dtype."""
        kinds = [o.dtypes.get(self.dtypes[0], "") for o in self.outputs if o.differentiable]
        forward = least_precise(self.dtypes[0], kinds)
        if set(self.coarse) & set(self.subject.made(self.first).output_names):
            forward = least_precise(forward, ["float32"])
        return REAL_OF.get(forward, forward)

    @cached_property
    def back(self) -> dict[str, Returned]:
        """What comes back in each dtype."""
        function = self.trials.function
        return {d: returned(self.untreated, recast(self.first, d, function), self.outputs) for d in self.dtypes}

    @property
    def comes_back(self) -> dict[str, str]:
        """The least precise dtype among outputs and gradients for each dtype of calls, if it is another."""
        wide = {d: ["float32"] if self.coarse and d in _DOUBLE else [] for d in self.dtypes}
        least = {d: least_precise(d, [*self.back[d].dtypes, *wide[d]]) for d in self.dtypes}
        return {dtype: other for dtype, other in least.items() if other != dtype}

    @cached_property
    def reads(self) -> bool:
        """Whether simple calls read memory that was never written."""
        return self._reads(self.trials.simple)

    def _reads(self, calls: Sequence[Call]) -> bool:
        subject = self.trials.subject
        return "new_memory" in self.implementation.capabilities and any(
            reads_new_memory(subject.made(call)) for call in calls
        )

    @cached_property
    def declined(self) -> tuple[tuple[Declined, ...], str]:
        """What forward refuses, and how many calls were tried, if not all."""
        return declined(self.bench, self.dtypes[0], self.asked.note)

    @cached_property
    def maps(self) -> tuple[bool, str]:
        """Whether single entries are mapped, and how many numbers were tried, if not all.

        Chance numbers say nothing about it.
        """
        return (False, "") if self.declaration.stochastic or self.reads else maps_entries(self.subject)

    @cached_property
    def paced(self) -> bool:
        """Whether a call was found to take long."""
        fastest = min(each.seconds for each in self.trials.kinds.values())
        return self.asked.timed and self.declaration.examples is None and fastest > cost.FAST

    @cached_property
    def usual(self) -> float:
        """The seconds that a call of a slow Function takes."""
        slow = self.paced or (self.declaration.examples or 1.0) < 1
        return cost.typical(self.made) if slow else 0.0

    @cached_property
    def share(self) -> float:
        """The share of the profile's examples."""
        return cost.share(self.usual) if self.paced else self.declaration.examples or 1.0

    @cached_property
    def long(self) -> tuple[tuple[Shapes, ...], str]:
        """The shapes with one long dimension that it takes, and which lengths are left out."""
        return ((), "") if self.reads else long_shapes(self.bench, self.usual)

    @cached_property
    def reads_in_the_end(self) -> bool:
        """Whether it reads new memory; a slow kernel may forget the end of a block."""
        return self.reads or (self.usual > 0 and self._reads([simple_call(self.own, each) for each in self.long[0]]))

    @property
    def has_formula(self) -> bool:
        """Whether built-in operations of its formula give gradients in float16."""
        whole = [replace(call, cotangents=self._cotangents) for call in self.trials.working[:TRIED]]
        half = [recast(call, "float16", self.own) for call in whole if "float16" in self.dtypes]
        return bool(half) and None not in map(gradients_of_formula, map(self.subject.made, half))


@dataclass(frozen=True)
class Probe:
    """How a fact is found out; it keeps its default if one of ``unless`` holds."""

    fact: str
    ask: Callable[[Known], Any]
    unless: tuple[Callable[[Known], bool], ...] = ()


def _draws(known: Known) -> bool:
    return known.declaration.stochastic


def _materializes(subject: Subject, call: Call, outputs: Sequence[Output]) -> bool:
    """Whether backward gets zeros, not None, for an unused output."""
    if "materialize" not in subject.implementation.capabilities or isinstance(subject.cls, Native):
        return True
    function = replace(subject.function, outputs=tuple(outputs))
    example = Example(subject.implementation, function, subject.cls, call)
    f, seen = example.observed()
    implementation = subject.implementation
    try:
        found, pullback = implementation.vjp(f, example.primals, track=example.track)
        kinds = [implementation.describe(y) for y in found]
        used = next(n for n, o in enumerate(outputs) if o.differentiable)
        pullback([example.tensor(ones(k), k.dtype) if n == used else None for n, k in enumerate(kinds)])
    except Exception as raised:  # noqa: BLE001 - the tests will report it
        noticed(raised)
    return all(g is not None for g in seen.cotangents_of_tensors)


def _holds_others(example: Example) -> bool:
    """Whether an output requires grad though no argument does."""
    implementation = example.implementation
    if "requires_grad" not in implementation.capabilities:
        return False
    outputs, _ = implementation.vjp(example.f, example.primals, track=[False] * len(example.track))
    return any(map(implementation.requires_grad, outputs))


# In the order in which they are asked.
PROBES = (
    Probe("outputs", lambda k: k.outputs),
    Probe("dtypes", lambda k: k.dtypes),
    Probe("composite", lambda k: k.composite),
    Probe("refused", lambda k: k.trials.refused),
    Probe("is_class", lambda k: not isinstance(k.trials.cls, Native)),
    Probe("foretells", lambda k: k.implementation.foretells(k.declaration.function)),
    Probe("unpassed", lambda k: tuple(k.implementation.keywords_of(k.declaration.function))),
    Probe("batches", lambda k: batches(k.trials.cls, k.implementation)),
    Probe("jvp", lambda k: has_jvp(k.trials.cls, k.implementation)),
    Probe("any_gradient", lambda k: k.declaration.surrogate and k.declaration.soft is None),
    Probe("compared", lambda k: k.declaration.reference is not None and k.composite),
    Probe("interpreted", lambda k: k.trials.interpreted),
    Probe("asked", lambda k: tuple(test for word in k.declaration.also for test in REQUESTS[word])),
    Probe("coarse", lambda k: tuple(k.coarse)),
    Probe("computes_in", lambda k: k.computes_in),
    Probe("comes_back", lambda k: k.comes_back),
    Probe("sparse", lambda k: any(each.sparse for each in k.back.values())),
    Probe("declined", lambda k: k.declined[0]),
    Probe("tried_all", lambda k: not k.declined[1]),
    Probe("maps_entries", lambda k: k.maps[0]),
    Probe("share", lambda k: k.share),
    Probe("paced", lambda k: k.paced and k.share < 1),
    Probe("long_shapes", lambda k: k.long[0]),
    Probe("cut", lambda k: tuple(filter(None, (k.long[1], k.maps[1], k.declined[1])))),
    Probe("reads_new_memory", lambda k: k.reads_in_the_end),
    Probe("has_formula", lambda k: k.has_formula, (_draws,)),
    Probe("materialize", lambda k: _materializes(k.trials.subject, k.first, k.outputs)),
    Probe("refers_in", lambda k: refers_in(k.declaration, k.trials.subject, k.first, composite=k.composite)),
    Probe("refused_layouts", lambda k: tuple(refused_layouts(k.bench, k.trials.simple)), (_draws,)),
    Probe("stale", lambda k: tuple(stale(k.declaration, k.examples, k.oracle))),
    Probe("holds_others", lambda k: _holds_others(k.examples[0])),
    Probe("resizes", lambda k: resizes(k.made), (_draws, lambda k: k.reads_in_the_end)),
    Probe("sweeps", lambda k: tuple(largest_errors(k.subject)) if k.maps[0] and k.asked.errors else ()),
    Probe("emptied", lambda k: emptied(k.bench, k.asked.note) if k.asked.empty else ()),
)
