"""The subject of a test: one Function on one implementation and device, with the verbs that tests are written in."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NoReturn

import numpy as np
import pytest
from hypothesis import assume
from hypothesis import strategies as st

from autograd_conformance.harness.compare import difference, same_bits
from autograd_conformance.harness.example import Example
from autograd_conformance.harness.outcomes import Broken, Finding, Record, message_of, named, told
from autograd_conformance.harness.profiles import explaining
from autograd_conformance.harness.script import script_for
from autograd_conformance.harness.transforms import FirstOrder, SecondOrder
from autograd_conformance.implementations.protocol import Description, Deviation, Implementation
from autograd_conformance.reference.definitions import FLOATING, Function
from autograd_conformance.reference.ladder import Estimate, Verdict, inner, judge
from autograd_conformance.reference.properties import PROPERTIES
from autograd_conformance.reference.rounding import PRECISION, SAFETY, Tracked
from autograd_conformance.strategies.calls import Call, calls
from autograd_conformance.strategies.shapes import few_shape_tuples, shape_tuples


@dataclass
class Subject:
    """A Function under test."""

    implementation: Implementation
    function: Function
    device: str
    property_id: str = "VJP-REF"
    dtype: str | None = None
    variant: str = ""
    allowed: tuple[str, ...] = FLOATING
    record: Record = field(default_factory=Record)
    replayed: Call | None = None
    cpu_seconds: float = 0.0
    current: Call | None = None
    choices: dict[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"{self.implementation.name}-{self.function.name}-{self.device}"

    @property
    def share(self) -> float:
        """The share of a test's examples that it gets."""
        return self.implementation.share_of_examples

    @property
    def claim_id(self) -> str:
        """The property's id, with the variant of the test."""
        return named(self.property_id, self.variant)

    @property
    def key(self) -> dict[str, Any]:
        """What the test's result line starts with; the id is the same whatever the implementation."""
        line = {"kind": "result", "id": f"{self.claim_id}[{self.function.name}-{self.device}]"}
        variant = {"variant": self.variant} if self.variant else {}
        return {**line, "property": self.property_id, **variant, "function": self.function.name, "device": self.device}

    @property
    def needs(self) -> frozenset[str]:
        """The capabilities that the Function needs."""
        f = self.function
        implied = {"tuples": len(f.outputs) > 1, "materialize": not f.materialize}
        return f.needs | {capability for capability, needed in implied.items() if needed}

    @property
    def deviation(self) -> Deviation | None:
        """What the implementation is listed not to keep here."""
        listed = self.implementation.deviations
        return next((d for d in listed if d.names(self.claim_id, self.function.name)), None)

    def script(self, failure: dict[str, Any]) -> dict[str, str]:
        """What a report adds to a failure: a script that shows it without this suite, or why there is none."""
        if not failure.get("call"):
            return {}
        script, problem = script_for(self.implementation, self.function, self.claim_id, failure)
        return {"script": script} if script else {"no_script": problem}

    # What is drawn.

    @property
    def dtypes(self) -> tuple[str, ...]:
        """The dtypes of the run that the test, the Function and the implementation all have."""
        common = set(self.allowed) & set(self.implementation.dtypes)
        return tuple(d for d in self.function.dtypes if d in common and self.dtype in (None, d))

    def calls(self, **restrictions: Any) -> st.SearchStrategy[Call]:
        """Calls within the Function's domain, on the subject's device; see `strategies.calls.calls`."""
        if self.replayed is not None:
            return st.just(self.replayed)
        claimed = self.implementation.capabilities
        # A layout is seen through views alone; elsewhere it would only cost time.
        unseen = {} if "views" in claimed else {"layouts": False, "cotangent_layouts": False}
        omitted = "keywords" in claimed
        per_rank = self.implementation.shapes_per_rank
        few = {} if per_rank is None else {"shapes": few_shape_tuples(self.function, per_rank)}
        options = {"omitted": omitted, **few, **restrictions, **unseen}
        if not self.implementation.empty:
            among = options.get("shapes") or shape_tuples(self.function)
            options["shapes"] = tuple(shapes for shapes in among if not any(0 in shape for shape in shapes))
            if not options["shapes"]:
                pytest.skip(f"skip: {self.implementation.name} supports no tensors without elements")
        return calls(self.function, dtypes=self.dtypes, device=self.device, **options)

    def recasts(self, call: Call) -> tuple[Call, ...]:
        """The call in the dtypes in which it is looked at: its own."""
        return (call,)

    def draw(self, data: Any, strategy: st.SearchStrategy[Any] | Sequence[Any], label: str) -> Any:
        """Draw what a test varies beside the call; a failure names it."""
        options = strategy if isinstance(strategy, st.SearchStrategy) else st.sampled_from(strategy)
        self.choices[label] = data.draw(options, label=label)
        return self.choices[label]

    def example(self, call: Call) -> Example:
        """The call made concrete on the implementation, and counted."""
        example = Example(self, call)
        if not self.implementation.empty:
            assume(all(y.size for y in example.expected_outputs))
        self.record.begin(repr(call))
        self.current = call
        return example

    @cached_property
    def cls(self) -> Any:
        """The custom Function as the implementation's own class."""
        return self.function.body(self.implementation.xp, self.implementation.ag)

    @property
    def separate(self) -> bool:
        """Whether the Function has a setup_context."""
        inherited = getattr(self.implementation.ag.Function, "setup_context", None)
        return getattr(self.cls, "setup_context", None) is not inherited

    @property
    def engines(self) -> tuple[str, ...]:
        """The ways to ask the implementation for gradients."""
        return ("grad", "backward") if "accumulate" in self.implementation.capabilities else ("grad",)

    @contextmanager
    def blaming_the_function(self) -> Iterator[None]:
        """Report an exception that comes out of the implementation, on a call within the domain, as a failure."""
        self.choices = {}
        excused = self.record.excused
        try:
            yield
            self.record.answered += self.record.excused == excused
        except Broken:
            raise
        except Exception as raised:
            if self.current is None or not _passes_through(raised, type(self.implementation)):
                raise
            self.judge_exception(self.current, raised)

    def judge_exception(self, call: Call, raised: Exception, *, hint: str = "") -> None:
        """Report an exception that came out of the implementation."""
        got = f"an exception, {type(raised).__name__}: {message_of(raised)}"
        self.fail(call, "what came of the call", got=got, expected="a result", hint=hint, cause=raised)

    # What may be refused.

    def refusal(self, action: Callable[[], Any]) -> Exception | None:
        """The exception by which the implementation refuses an action, None if it does not."""
        try:
            action()
        except self.implementation.refusals as refused:
            self.record.refused += 1
            return refused
        return None

    def unless_refused(self, action: Callable[[], Any], *, otherwise: Any, wanted: bool = False) -> Any:
        """The action's result, or ``otherwise`` if the implementation refuses it loudly.

        Unless a refusal is what is ``wanted``, nothing is known of a property if all its examples are refused.
        """
        found = []
        refused = self.refusal(lambda: found.append(action()))
        if refused is not None and not wanted:
            self.record.excuse_with(told(refused))
        return otherwise if refused else found[0]

    # What is asserted.

    def fail(
        self, call: Call, what: str, *, got: Any, expected: Any, cause: Exception | None = None, **details: Any
    ) -> NoReturn:
        """Report that the property under test is broken."""
        sentence = PROPERTIES[self.property_id].sentence if self.property_id in PROPERTIES else ""
        version = self.implementation.environment().version
        where = f"{self.function.name} on {self.implementation.name} {version}, {self.device}"
        chosen = ", ".join(f"{label}: {value}" for label, value in self.choices.items())
        finding = Finding(what, str(got), str(expected), repr(call), chosen=chosen, **details)
        raise Broken(self.property_id, sentence, where, finding) from cause

    def wrong_value(self, call: Call, what: str, **details: Any) -> NoReturn:
        """Report that a number is not what it should be."""
        self.fail(call, what, **details)

    def assert_that(self, holds: bool, call: Call, what: str, *, got: Any, expected: Any, hint: str = "") -> None:
        """Equivalent to ``assert holds``, phrased as what came and what should have come."""
        __tracebackhide__ = True
        self.record.checks += 1
        if not holds:
            self.fail(call, what, got=got, expected=expected, hint=hint)

    def assert_equal(self, call: Call, what: str, *, got: Any, expected: Any, hint: str = "") -> None:
        """Equivalent to ``assert got == expected``."""
        __tracebackhide__ = True
        self.assert_that(got == expected, call, what, got=got, expected=expected, hint=hint)

    def assert_close(
        self, call: Call, whats: Sequence[str], *, got: Sequence[Any], expected: Sequence[Tracked | None],
        slack: float = SAFETY, hint: str = "",
    ) -> None:  # fmt: skip
        """Each tensor of ``got`` equals the reference within its bound, and is None exactly where that is."""
        __tracebackhide__ = True
        for number, (what, mine, theirs) in enumerate(zip(whats, got, expected, strict=True)):
            self.record.checks += 1
            if mine is None or theirs is None:
                if mine is not theirs:
                    self.wrong_value(call, what, got=_brief(mine), expected=_brief(theirs), hint=hint)
                continue
            array = self._array(mine)
            if array.shape != theirs.shape:
                self.fail(call, f"shape of {what}", got=array.shape, expected=theirs.shape, hint=hint)
            worst = difference(array, theirs, slack=slack)
            if worst is None:
                continue
            self.record.measure(call.dtype, worst.ratio)
            if not worst.holds:
                self.wrong_value(
                    call, f"{what} at {worst.index}", got=worst.got, expected=worst.expected,
                    bound=f"{worst.bound:.3g} (off by {abs(worst.got - worst.expected):.3g})", hint=hint,
                    component={"what": what, "number": number, "index": list(worst.index), "bound": worst.bound},
                )  # fmt: skip

    def assert_slope(
        self, call: Call, what: str, *, got: Sequence[Any], along: Sequence[Any], ladder: Estimate, hint: str = "",
        culprit: Callable[[tuple[Any, ...]], str] = lambda _: "",
    ) -> None:  # fmt: skip
        """The gradients' inner product with a direction is the slope that the finite-difference ladder measured.

        ``culprit`` finds the component that is wrong, given the gradients in NumPy.
        """
        __tracebackhide__ = True
        self.record.checks += 1
        gradients = tuple(None if g is None else self._array(g) for g in got)
        claim = inner(gradients, tuple(along))
        rounding = self.rounding(gradients, along)
        verdict = judge(claim, ladder, rounding=rounding)
        self.record.inconclusive += verdict is Verdict.INCONCLUSIVE
        if verdict is Verdict.DISAGREES:
            off = f"{10 * ladder.bound + rounding:.3g} (off by {abs(claim - ladder.value):.3g})"
            found = "; ".join(filter(None, (hint, culprit(gradients) if explaining() else "")))
            self.wrong_value(call, what, got=claim, expected=ladder.value, bound=off, hint=found)

    def assert_first_order(self, call: Call, first: FirstOrder) -> None:
        """The gradients are the derivative that finite differences of the reference measure along a direction."""
        __tracebackhide__ = True
        what = "slope of the drawn direction"
        self.assert_slope(
            call, what, got=first.gradients, along=first.direction, ladder=first.estimate, culprit=first.culprit
        )

    def rounding(self, gradients: Sequence[Any], direction: Sequence[Any]) -> float:
        """What the inner product of double-precision gradients and a direction may be off by."""
        return _rounding(gradients, direction)

    def assert_second_order(self, call: Call, second: SecondOrder) -> None:
        """The second derivative is right; failing that, it says in which way it is wrong.

        Finite differences judge its value in double precision; in lower precision it must be there.
        """
        __tracebackhide__ = True
        what = f"second derivative ({second.title})"
        if second.refusal is not None:
            self.fail(call, what, got=f"refused: {second.refusal}", expected=second.estimate.value)
        if second.detached and abs(second.estimate.value) > self._unsure(second):
            self.record.checks += 1
            expected = f"{second.estimate.value} along the drawn direction"
            self.fail(call, what, got=DETACHED, expected=expected, hint=_SECOND_ORDER)
        if call.dtype not in _DOUBLE:
            return
        self.assert_slope(
            call, what, got=second.gradients, along=second.direction, ladder=second.estimate, hint=_SECOND_ORDER,
            culprit=second.culprit,
        )  # fmt: skip

    def _unsure(self, second: SecondOrder) -> float:
        """How large a second derivative may be measured that is none."""
        return 10 * second.estimate.bound + self.rounding((None,) * len(second.direction), second.direction)

    def assert_described(self, example: Example, outputs: Sequence[Any], gradients: Sequence[Any]) -> None:
        """Outputs and gradients have the reference's shapes and dtypes, on the call's device."""
        __tracebackhide__ = True
        describe, call = self.implementation.describe, example.call
        got: list[Description | None] = [describe(y) for y in outputs]
        what = "shape, dtype and device of the outputs"
        self.assert_equal(call, what, got=got, expected=example.output_descriptions)
        pairs = zip(call.tensors, example.track, strict=True)
        expected = [Description(t.shape, t.dtype, call.device) if tracked else None for t, tracked in pairs]
        got = [None if g is None else describe(g) for g in gradients]
        self.assert_equal(call, "shape, dtype and device of the gradients", got=got, expected=expected)

    def assert_received(self, example: Example, gradients: Sequence[Any]) -> None:
        """The tensors that require grad get a gradient, and no others."""
        __tracebackhide__ = True
        got = [g is not None for g in gradients]
        self.assert_equal(example.call, "which tensors get a gradient", got=got, expected=list(example.track))

    def assert_returned(self, example: Example, gradients: Sequence[Any]) -> None:
        """The gradients fit their inputs as backward returned them, before the engine has made them fit."""
        __tracebackhide__ = True
        call = example.call
        for slot, tensor, gradient in zip(example.slots, call.tensors, gradients, strict=True):
            fitting = Description(tensor.shape, tensor.dtype, call.device)
            got = fitting if gradient is None else self.implementation.describe(gradient)
            self.assert_equal(call, f"argument {slot}'s gradient as backward returned it", got=got, expected=fitting)

    def assert_unrecorded(self, example: Example, outputs: Sequence[Any]) -> None:
        """Outputs that came while grad mode was off do not require grad."""
        __tracebackhide__ = True
        got = [self.implementation.requires_grad(y) for y in outputs]
        self.assert_equal(example.call, "requires_grad without grad mode", got=got, expected=[False] * len(got))

    def assert_zero(self, call: Call, whats: Sequence[str], *, got: Sequence[Any], hint: str = "") -> None:
        """Each tensor is zero everywhere, and never NaN; None counts as zero."""
        __tracebackhide__ = True
        for what, tensor in zip(whats, got, strict=True):
            self.record.checks += 1
            array = np.zeros(()) if tensor is None else self.implementation.numpy(tensor)
            if not np.all(array == 0):
                self.wrong_value(call, what, got=_brief(array), expected="zero everywhere", hint=hint)

    def assert_finite(
        self, call: Call, whats: Sequence[str], *, got: Sequence[Any], expected: Sequence[Tracked | None], given: bool
    ) -> None:
        """Each element is finite where the reference is and its computation cannot overflow, ``given`` that so is the
        forward."""
        __tracebackhide__ = True
        for what, mine, theirs in zip(whats, got, expected, strict=True):
            if not given or mine is None or theirs is None:
                continue
            array = self.implementation.numpy(mine)
            finite = np.isfinite(theirs.value) & np.isfinite(theirs.error)
            self.record.checks += bool(np.any(finite))
            wrong = finite & ~np.isfinite(array)
            if np.any(wrong):
                index = tuple(int(i) for i in np.argwhere(wrong)[0])
                self.wrong_value(call, f"{what} at {index}", got=array[index], expected=theirs.value[index])

    def assert_same(
        self, call: Call, whats: Sequence[str], *, got: Sequence[Any], expected: Sequence[Any], hint: str = ""
    ) -> None:
        """Each tensor of ``got`` equals its counterpart bit for bit; None equals only None."""
        __tracebackhide__ = True
        for what, mine, theirs in zip(whats, got, expected, strict=True):
            self.record.checks += 1
            if mine is None or theirs is None:
                if mine is not theirs:
                    self.wrong_value(call, what, got=_brief(mine), expected=_brief(theirs), hint=hint)
                continue
            a, b = self._array(mine), self._array(theirs)
            if not same_bits(a, b):
                self.wrong_value(call, what, got=_brief(a), expected=f"{_brief(b)}, bit for bit", hint=hint)

    def _array(self, value: Any) -> Any:
        if isinstance(value, Tracked):
            return value.value
        # Arrays may be the implementation's tensors themselves; whatever else is no tensor has to fail in `numpy`.
        given = isinstance(value, np.ndarray) and not self.implementation.is_tensor(value)
        return value if given else self.implementation.numpy(value)


_DOUBLE = ("float64", "complex128")

# What is said of a derivative that is not there.
DETACHED = "silently detached"
_SECOND_ORDER = (
    "an intermediate was saved, or computed outside the graph: save inputs or outputs instead, return the "
    "intermediate as an output, or declare the Function once-differentiable"
)


def _passes_through(raised: BaseException, implementation: type) -> bool:
    """Whether an exception came up through the adapter, and so out of the implementation or the Function."""
    # An adapter may refine another one.
    modules = {sys.modules[kind.__module__] for kind in implementation.__mro__ if issubclass(kind, Implementation)}
    files = {module.__file__ for module in modules} - {sys.modules[Implementation.__module__].__file__}
    return any(frame.filename in files for frame in traceback.extract_tb(raised.__traceback__))


def absolute_terms(gradients: Sequence[Any], direction: Sequence[Any]) -> float:
    """The sum of the absolute terms of the inner product of gradients and a direction."""
    pairs = [(g, u) for g, u in zip(gradients, direction, strict=True) if g is not None and u is not None]
    return sum(float(np.sum(np.abs(g) * np.abs(u))) for g, u in pairs)


def _rounding(gradients: Sequence[Any], direction: Sequence[Any]) -> float:
    """What summing the inner product of double-precision gradients and a direction may be off by."""
    pairs = [(g, u) for g, u in zip(gradients, direction, strict=True) if g is not None and u is not None]
    terms = absolute_terms(gradients, direction)
    return float(SAFETY * PRECISION["float64"].unit * terms * (1 + sum(g.size for g, _ in pairs)))


def _brief(value: Any) -> str:
    if isinstance(value, Tracked):
        value = value.value
    return "None" if value is None else np.array2string(np.asarray(value), threshold=8, separator=", ")
