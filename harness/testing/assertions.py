"""The assertions of tests of properties: each compares a result with the expected one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NoReturn

import numpy as np

from autograd_conformance.harness.outcomes import Broken, Finding, Kind, one_line
from autograd_conformance.harness.testing.averages import ByFormula, Results, worst_averages
from autograd_conformance.harness.testing.compare import difference, same_bits
from autograd_conformance.harness.testing.drawing import explaining
from autograd_conformance.harness.testing.examined import Examined
from autograd_conformance.harness.testing.example import Example
from autograd_conformance.harness.testing.kinks import at_kinks, exists
from autograd_conformance.harness.testing.policy import STRICT, Policy
from autograd_conformance.harness.testing.transforms import Derived, FirstOrder, SecondOrder
from autograd_conformance.implementations.protocol import Description
from autograd_conformance.reference.averages import CALLS
from autograd_conformance.reference.definitions import Array, Function
from autograd_conformance.reference.ladder import Estimate, Verdict, inner, judge
from autograd_conformance.reference.rounding import PRECISION, SAFETY, Tracked
from autograd_conformance.strategies.calls import Call, Tensor

# The text of a missing derivative in a finding.
DETACHED = "no derivative (silently detached)"

# Numbers between these, and 0, are drawn in most tests.
_ORDINARY = 2.0**-3, 2.0**2

# What a systematic error means.
_NOT_AVERAGED = "rounding errors average out: a constant, a cast or a sum is wrong in this dtype"

# Why there is no slope to compare with.
UNDEFINED = "an output is not finite, or more of it is free than up_to= says, as at equal eigenvalues"


class Assertions(Examined):
    """The assertions. Where a property's sentence leaves room, they ask the policy."""

    function: Function

    @property
    def policy(self) -> Policy:
        """The policy: which results count as right where the sentence leaves room."""
        return STRICT

    def fail(
        self, call: Call, what: str, *, got: Any, expected: Any, cause: BaseException | None = None, **details: Any
    ) -> NoReturn:
        """Fail: the property under test does not hold. ``details`` are fields of the `Finding`."""
        chosen = ", ".join(f"{label}: {value}" for label, value in self.choices.items())
        choices = {label: _data(value) for label, value in self.choices.items()}
        finding = Finding(what, str(got), str(expected), repr(call), chosen=chosen, choices=choices, **details)
        self.break_(finding, cause)

    def wrong_value(self, call: Call, what: str, *, got: Any, expected: Any, **details: Any) -> NoReturn:
        """Fail because of a wrong number, of which another property may be the cause."""
        self.fail(call, what, got=got, expected=expected, compared=(got, expected), **details)

    def assert_that(self, holds: bool, call: Call, what: str, *, got: Any, expected: Any, **details: Any) -> None:
        """Equivalent to ``assert holds``; ``details`` are fields of the `Finding`."""
        __tracebackhide__ = True
        self.record.checks += 1
        if not holds:
            self.fail(call, what, got=got, expected=expected, **{"component": {"aspect": "equality"}, **details})

    def assert_equal(self, call: Call, what: str, *, got: Any, expected: Any, **details: Any) -> None:
        """Equivalent to ``assert got == expected``; ``details`` are fields of the `Finding`."""
        __tracebackhide__ = True
        self.assert_that(got == expected, call, what, got=got, expected=expected, **details)

    def assert_close(
        self, call: Call, whats: Sequence[str], *, got: Sequence[Any], expected: Sequence[Tracked | None],
        slack: float = SAFETY, hint: str = "",
    ) -> None:  # fmt: skip
        """Assert that each tensor equals the reference within its bound, and is None exactly where the reference is."""
        __tracebackhide__ = True
        got = self.policy.filled(got, expected)
        checks, worst = self.record.checks, dict(self.record.worst_by_dtype)
        try:
            self._assert_close(call, whats, got, expected, slack, hint)
        except Broken:
            wider = self.policy.widened(call, whats, expected)
            if wider is None:
                raise
            self.record.checks, self.record.worst_by_dtype = checks, worst
            self._assert_close(call, whats, got, wider, slack, hint)
            # What any number would fit says nothing.
            self.record.inconclusive += sum(bool(e is not None and e.size and np.all(np.isinf(e.error))) for e in wider)

    def _assert_close(
        self, call: Call, whats: Sequence[str], got: Sequence[Any], expected: Sequence[Tracked | None], slack: float,
        hint: str,
    ) -> None:  # fmt: skip
        __tracebackhide__ = True
        for number, (what, mine, theirs) in enumerate(zip(whats, got, expected, strict=True)):
            self.record.checks += 1
            which: dict[str, Any] = {"what": what, "number": number}
            if mine is None or theirs is None:
                self._assert_both_missing(call, which, mine, theirs, hint)
                continue
            array = self._array(mine)
            if array.shape != theirs.shape:
                which["aspect"] = "shape"
                self.fail(call, f"shape of {what}", got=array.shape, expected=theirs.shape, hint=hint, component=which)
            worst = difference(array, theirs, slack=slack)
            if worst is None:
                continue
            self.record.measure(call.dtype, worst.ratio)
            if not worst.holds:
                place = {"index": list(worst.index), "bound": worst.bound}
                lost = np.isnan(worst.got) and np.isfinite(worst.expected)
                self.wrong_value(
                    call, f"{what} at {worst.index}", got=worst.got, expected=worst.expected,
                    kind=Kind.NAN if lost else Kind.WRONG,
                    bound=f"{worst.bound:.3g} (off by {abs(worst.got - worst.expected):.3g})", hint=hint,
                    component={"aspect": "value", "what": what, "number": number, **place},
                )  # fmt: skip

    def _assert_both_missing(self, call: Call, which: dict[str, Any], got: Any, expected: Any, hint: str) -> None:
        __tracebackhide__ = True
        if got is not expected:
            details = {"got": _brief(got), "expected": _brief(expected), "hint": hint}
            self.wrong_value(call, which["what"], component={**which, "aspect": "presence"}, **details)

    def assert_slope(
        self, call: Call, what: str, *, got: Sequence[Any], along: Sequence[Any], ladder: Estimate, hint: str = "",
        culprit: Callable[[tuple[Any, ...]], str] = lambda _: "", detached: bool = False,
    ) -> None:  # fmt: skip
        """Assert that the inner product of gradients and direction is the slope that finite differences measured.

        ``culprit`` describes the wrong component, given the gradients in NumPy. ``detached`` says that no input has a
        gradient.
        """
        __tracebackhide__ = True
        # A gradient that is infinite where nothing moves says nothing about the slope.
        given = zip(got, along, strict=True)
        gradients = tuple(
            None if g is None else self._array(g) if u is None else np.where(np.asarray(u) == 0, 0, self._array(g))
            for g, u in given
        )
        claim = inner(gradients, tuple(along))
        if ladder.reason is None and not ladder.evaluations and claim == 0:
            # Without elements there is no slope to compare.
            return
        rounding = self.policy.rounding(gradients, along, self.function.accuracy(call.dtype))
        verdict = judge(claim, ladder, rounding=rounding)
        self.record.compare_slope(call.dtype, ladder.reason)
        bound = 10 * ladder.bound + rounding
        self.record.telling += verdict is Verdict.AGREES and abs(ladder.value) > bound
        if verdict is Verdict.DISAGREES:
            off = f"{bound:.3g} (off by {abs(claim - ladder.value):.3g})"
            component = {"what": what, "aspect": "value", "bound": bound}
            found = "; ".join(filter(None, (hint, culprit(gradients) if explaining() else "")))
            details: dict[str, Any] = {"got": claim, "bound": off, "kind": Kind.WRONG}
            if np.isnan(claim):
                details["kind"] = Kind.NAN
            elif detached:
                details = {"got": DETACHED, "kind": Kind.DETACHED}
            compared = (claim, ladder.value)
            self.fail(call, what, expected=ladder.value, compared=compared, hint=found, component=component, **details)

    def assert_first_order(self, call: Call, first: FirstOrder) -> None:
        """Assert that the gradients agree with finite differences of the reference along a direction."""
        __tracebackhide__ = True
        what = "slope of the drawn direction"
        if not self.policy.defined(call):
            self.record.compare_slope(call.dtype, UNDEFINED)
            return
        self.assert_slope(
            call, what, got=first.gradients, along=first.direction, ladder=first.estimate, culprit=first.culprit
        )

    def assert_among_slopes(self, example: Example, gradients: Sequence[Any]) -> None:
        """Assert that the slopes which gradients claim at a kink, tie or zero lie between the slopes nearby.

        Nothing is claimed where the function jumps, or where nearby points are not in its domain.
        """
        __tracebackhide__ = True
        arrays = [None if g is None else self._array(g) for g in gradients]
        for each in at_kinks(
            example, arrays, partial(self.policy.rounding, dtype=self.function.accuracy(example.call.dtype))
        ):
            self.record.checks += 1
            if each.verdict is not Verdict.DISAGREES or each.slopes is None:
                continue
            moved = [[number, list(entries)] for number, entries in each.places]
            nearest, tolerance = each.slopes.nearest(each.claim), each.slopes.tolerance
            ends = {"low": each.slopes.low, "high": each.slopes.high, "bound": tolerance}
            place = {"moved": moved, "precision": self.function.computes_in}
            self.wrong_value(
                example.call, "slope where entries are special or equal", got=each.claim, expected=nearest,
                bound=f"{tolerance:.3g} (off by {abs(each.claim - nearest):.3g})", hint=each.words,
                kind=Kind.NAN if np.isnan(each.claim) else Kind.WRONG,
                component={"what": "slope", "aspect": "value", **place, **ends},
            )  # fmt: skip

    def assert_exists(self, example: Example, what: str, derived: Derived) -> None:
        """Assert that no gradient is NaN or infinite where the slopes near the call's point agree."""
        __tracebackhide__ = True
        self.record.checks += 1
        arrays = [None if g is None else self._array(g) for g in derived.gradients[: len(example.slots)]]
        lost = [(n, g[~np.isfinite(g)]) for n, g in enumerate(arrays) if g is not None and not np.all(np.isfinite(g))]
        if not lost or self.policy.built_in(example) or not self.policy.defined(example.call):
            return
        slopes = exists(example, derived)
        if slopes is not None:
            (number, (got, *_)), *_ = lost
            by = "a difference of eigenvalues" if _by_eigenvalues(example, number) else "0"
            # The slopes are measured nearby: that they agree is known better than what they are.
            expected = f"a number within {slopes.tolerance:.1g} of {slopes.nearest(slopes.low):.2g}"
            self.wrong_value(
                example.call, what, got=got, expected=expected, kind=Kind.NAN,
                hint=f"it is not finite for {example.input_names[number]}, though the derivative exists; look for a "
                f"division by {by}",
                component={"what": what, "aspect": "value", "bound": slopes.tolerance},
            )  # fmt: skip

    def assert_unbiased(self, example: Example, results: Results, by_formula: ByFormula) -> None:
        """Assert that the results of many calls are not off on average by more than rounding can cause.

        ``by_formula`` gives the gradients by built-in operations, if they are known.
        """
        __tracebackhide__ = True
        for name, worst in worst_averages(example, results, self.policy.conditioning, by_formula):
            if worst is None and results.verifies:
                self.record.leave_open("the expected numbers are too small, or too different, for an average")
                continue
            self.record.checks += 1
            if worst is None:
                continue
            self.record.measure(example.call.dtype, worst.ratio)
            if worst.ratio > 1:
                of = "the typical entry" if worst.bias else "its value"
                nothing = worst.value == -1 and not worst.bias
                self.wrong_value(
                    example.call, f"{name}, on average over {CALLS} calls, {worst.where}",
                    got=f"off by {worst.value:+.2%} of {of}", expected=f"off by at most {worst.limit:.2%}",
                    component={"what": name, "aspect": "average"}, kind=results.missing if nothing else Kind.WRONG,
                    hint="it is 0 or missing" if nothing else _NOT_AVERAGED,
                )  # fmt: skip

    def assert_second_order(self, call: Call, second: SecondOrder) -> None:
        """Assert that the second derivative agrees with finite differences, or is refused if the policy allows it.

        Values are compared in the precision of the reference only. In a lower one the derivative must not be missing.
        """
        __tracebackhide__ = True
        refusal = self.policy.second_refusal(call, second)
        if refusal is not None:
            self.record.excuse_with(f"second derivatives: {one_line(refusal)}")
            self.record.checks += 1
            return
        if not self.policy.defined(call):
            self.record.compare_slope(call.dtype, UNDEFINED)
            return
        what = f"second derivative ({second.loss}, through {second.engine})"
        if second.refusal is not None:
            got, component = one_line(second.refusal), {"aspect": "refused"}
            meaning = self.policy.meaning(call, second.refusal)
            details = {"hint": meaning.hint, **(self.raised(second.refusal, meaning.means) if meaning.hint else {})}
            self.fail(call, what, got=got, expected=second.estimate.value, component=component, **details)
        # The largest measured second derivative that may really be zero.
        nothing = (None,) * len(second.direction)
        rounding = self.policy.rounding(nothing, second.direction, self.function.derives_in)
        if second.detached and abs(second.estimate.value) > 10 * second.estimate.bound + rounding:
            self.record.checks += 1
            expected = f"{second.estimate.value} along the drawn direction"
            self.wrong_value(call, what, got=DETACHED, expected=expected, kind=Kind.DETACHED)
        if PRECISION[call.dtype].unit > PRECISION[self.function.derives_in].unit:
            if self.function.derives_in in self.implementation.untaken:
                self.record.untaken = f"{self.device} takes no {self.function.derives_in}, in which these are compared"
            return
        self.assert_slope(
            call, what, got=second.gradients, along=second.direction, ladder=second.estimate, culprit=second.culprit,
            detached=all(g is None for g in second.gradients[: len(call.tensors)]),
        )  # fmt: skip

    def assert_described(self, example: Example, outputs: Sequence[Any], gradients: Sequence[Any]) -> None:
        """Assert that outputs and gradients have the expected shapes and dtypes, on the call's device."""
        __tracebackhide__ = True
        describe, call = self.implementation.describe, example.call
        got: list[Description | None] = [describe(y) for y in outputs]
        what = "shape, dtype and device of the outputs"
        self.assert_equal(call, what, got=got, expected=example.expected.descriptions)
        pairs = zip(call.tensors, example.track, strict=True)
        expected = [Description(t.shape, t.dtype, call.device) if tracked else None for t, tracked in pairs]
        got = [None if g is None else describe(g) for g in gradients]
        self.assert_fits(call, "shape, dtype and device of the gradients", got=got, expected=expected)

    def assert_fits(self, call: Call, what: str, *, got: Any, expected: Any) -> None:
        """Assert that gradients are as expected; a peculiarity of the call may explain it if they are not."""
        __tracebackhide__ = True
        self.assert_equal(call, what, got=got, expected=expected, compared=(got, expected))

    def assert_precise(self, example: Example, whats: Sequence[str]) -> None:
        """Assert that these results in double precision have numbers that single precision lacks."""
        __tracebackhide__ = True
        self.record.checks += 1
        for what in self.policy.coarse(example):
            if what in whats:
                number, part = list(whats).index(what), "forward" if what in example.output_names else "backward"
                self.fail(
                    example.call,
                    f"the numbers of {what}",
                    got="all of single precision",
                    expected="of double precision, as its dtype",
                    component={"what": what, "number": number, "aspect": "precision"},
                    hint=f"{part} casts inside; compute in the dtype of the inputs, or declare dtypes= without double "
                    "precision",
                )

    def assert_received(self, example: Example, gradients: Sequence[Any]) -> None:
        """Assert that exactly the tensors that require grad get a gradient."""
        __tracebackhide__ = True
        got, expected = self.policy.received(example, gradients), list(example.track)
        self.assert_fits(example.call, "which tensors get a gradient", got=got, expected=expected)

    def assert_returned(self, example: Example, gradients: Sequence[Any]) -> None:
        """Assert that the gradients fit their inputs as backward returned them, before the engine sums and casts."""
        __tracebackhide__ = True
        call = example.call
        if not self.policy.fits_as_returned:
            return
        for slot, tensor, gradient in zip(example.slots, call.tensors, gradients, strict=True):
            fitting = Description(tensor.shape, tensor.dtype, call.device)
            got = fitting if gradient is None else self.implementation.describe(gradient)
            self.assert_equal(call, f"argument {slot}'s gradient as backward returned it", got=got, expected=fitting)

    def assert_unrecorded(self, example: Example, outputs: Sequence[Any]) -> None:
        """Assert that outputs of a call with grad mode off do not require grad."""
        __tracebackhide__ = True
        got = [self.implementation.requires_grad(y) for y in self.policy.unrecorded(example, outputs)]
        self.assert_equal(example.call, "requires_grad without grad mode", got=got, expected=[False] * len(got))

    def assert_zero(self, call: Call, whats: Sequence[str], *, got: Sequence[Any], hint: str = "") -> None:
        """Assert that each tensor is zero everywhere; None counts as zero."""
        __tracebackhide__ = True
        if not self.policy.defined(call):
            return
        for number, (what, tensor) in enumerate(zip(whats, got, strict=True)):
            self.record.checks += 1
            array = np.zeros(()) if tensor is None else self.implementation.numpy(tensor)
            if np.all(array == 0):
                continue
            if not np.all((array == 0) | self.policy.infinitely_steep(call, what)):
                details = {"component": {"what": what, "number": number, "aspect": "zero"}, "hint": hint}
                kind = Kind.NAN if np.any(np.isnan(array)) else Kind.WRONG
                self.wrong_value(call, what, got=_brief(array), expected="zero everywhere", kind=kind, **details)

    def assert_finite(self, example: Example, gradients: Sequence[Any], *, given: bool) -> None:
        """Assert that each gradient is finite where the reference is; ``given`` says whether the outputs are."""
        __tracebackhide__ = True
        call = example.call
        promised = self.policy.finite_given(example, given)
        if promised is None:
            self.record.leave_open("there is nothing to compare such values with")
        if not promised:
            return
        rows = zip(example.names, gradients, example.expected.gradients(), strict=True)
        for number, (what, mine, theirs) in enumerate(rows):
            if mine is None or theirs is None:
                continue
            array = self.implementation.numpy(mine)
            infinite = self.policy.infinite(example, number, array, theirs)
            self.record.checks += infinite is not None
            for wrong in infinite or ():
                which = {"what": what, "number": number, "aspect": "finite", "index": list(wrong.index)}
                kind = Kind.NAN if _is_ordinary_nan(example, number, wrong.index, array) else Kind.WRONG
                details = {"got": array[wrong.index], "expected": wrong.expected, "hint": wrong.hint, "kind": kind}
                self.wrong_value(call, f"{what} at {wrong.index}", component=which, **details)

    def assert_same(
        self, call: Call, whats: Sequence[str], *, got: Sequence[Any], expected: Sequence[Any], hint: str = ""
    ) -> None:
        """Assert that each tensor equals its counterpart bit for bit, or as closely as the policy demands."""
        __tracebackhide__ = True
        near = [None if y is None else self.policy.repeated(call, self._array(y)) for y in expected]
        if any(each is not None for each in near):
            self.assert_close(call, whats, got=got, expected=near, slack=1.0, hint=hint)
            return
        for number, (what, mine, theirs) in enumerate(zip(whats, got, expected, strict=True)):
            self.record.checks += 1
            which: dict[str, Any] = {"what": what, "number": number}
            if mine is None or theirs is None:
                self._assert_both_missing(call, which, mine, theirs, hint)
                continue
            a, b = self._array(mine), self._array(theirs)
            if not same_bits(a, b):
                which["aspect"] = "bits"
                exact = f"{_brief(b)}, bit for bit"
                self.wrong_value(call, what, got=_brief(a), expected=exact, hint=hint, component=which)

    def _array(self, value: Any) -> Any:
        if isinstance(value, Tracked):
            return value.value
        # NumPy arrays can be the implementation's tensors. Any other object that is not a tensor fails in `numpy`.
        given = isinstance(value, np.ndarray) and not self.implementation.is_tensor(value)
        return value if given else self.implementation.numpy(value)


def _is_ordinary_nan(example: Example, number: int, index: tuple[int, ...], gradient: Any) -> bool:
    """Whether a gradient is NaN at a number of ordinary size, where other properties meet it, too."""
    size, (low, high) = abs(example.values[example.slots[number]][index]), _ORDINARY
    return bool(np.isnan(gradient[index]) and (size == 0 or low <= size <= high))


def _by_eigenvalues(example: Example, number: int) -> bool:
    """Whether a formula at this tensor's matrices may divide by differences of eigenvalues, and hardly by others."""
    slot = example.slots[number]
    argument, given = example.function.arguments[slot], example.call.args[slot]
    zero = isinstance(given, Tensor) and given.fill == "zero matrix"
    return isinstance(argument, Array) and argument.values in ("symmetric", "definite") and not zero


def _data(value: Any) -> Any:
    """What a test varied, in JSON's terms; an object by its representation."""
    if isinstance(value, list | tuple):
        return [_data(each) for each in value]
    return value if isinstance(value, str | bool | int | None) else repr(value)


def _brief(value: Any) -> str:
    if isinstance(value, Tracked):
        value = value.value
    return "None" if value is None else np.array2string(np.asarray(value), threshold=8, separator=", ")
