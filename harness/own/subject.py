"""The subject of a test that checks a user's Function: what it may refuse is not its fault."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NoReturn

import numpy as np
from hypothesis import strategies as st

from autograd_conformance.harness.example import Example
from autograd_conformance.harness.outcomes import Broken, told
from autograd_conformance.harness.own import noise
from autograd_conformance.harness.own.declaration import Own
from autograd_conformance.harness.own.oracle import NOISE, inexact
from autograd_conformance.harness.profiles import explaining
from autograd_conformance.harness.script import own_script
from autograd_conformance.harness.subject import DETACHED, Subject, absolute_terms
from autograd_conformance.harness.transforms import SecondOrder, first_order, second_order
from autograd_conformance.reference.definitions import Shapes
from autograd_conformance.reference.rounding import PRECISION, SAFETY, Tracked
from autograd_conformance.strategies.calls import Call, Tensor, recast, with_cotangents
from autograd_conformance.strategies.shapes import shape_tuples

# Properties that are about more than one call's layouts: what they raise for laid out tensors may be excused.
_ABOUT_LAYOUTS = ("FWD-LAYOUT",)
_EMPTY = "tensors without elements"

# Properties of the plain call, from which failures of the others may follow; what a hint then says.
_PLAIN = ("VJP-REF", "VJP-FD", "FWD-VALUE", "FWD-DTYPE")
FOLLOWS = {
    "VJP-REF": "the plain call is wrong at this point as well",
    "VJP-FD": "the first derivative is wrong at this point as well",
    "VJP-COTANGENT-LAYOUT": "with contiguous cotangents the same call is right",
    "FWD-LAYOUT": "with contiguous inputs the same call is right",
}


@dataclass
class OwnSubject(Subject):
    """A user's Function under test."""

    tried: list[Call] = field(default_factory=list)

    @property
    def share(self) -> float:
        """How many examples it gets for each of another Function: more where it has no other oracle, or is asked."""
        return {"VJP-FD": 8.0, "BATCH-VMAP": 4.0, "ENV-AUTOCAST": 4.0, "FWD-LAYOUT": 3.0}.get(self.property_id, 1.5)

    @property
    def dtypes(self) -> tuple[str, ...]:
        """As of any Function; but second derivatives in double precision, in which they are compared, and batches in
        none in which a second look would be needed, at each of their members."""
        found = super().dtypes
        assert isinstance(self.function, Own)
        if self.function.declaration.stochastic:
            # A seed gives other random numbers in another dtype.
            return found[:1]
        if self.property_id == "BATCH-VMAP":
            return tuple(dtype for dtype in found if dtype not in noise.DTYPES) or found
        double = tuple(dtype for dtype in found if dtype in ("float64", "complex128"))
        if self.property_id != "DBL-CORRECT" or not double:
            return found
        # In one of the others a second derivative can be missing.
        return (*double * 3, *(dtype for dtype in found if dtype not in double))[: 3 * len(double) + 1]

    @property
    def conditioning(self) -> float:
        """How many times further than usual rounding may put the Function."""
        assert isinstance(self.function, Own)
        return self.function.declaration.conditioning

    def calls(self, **restrictions: Any) -> st.SearchStrategy[Call]:
        """As of any Function; but random numbers come in the order in which a tensor lies in memory."""
        assert isinstance(self.function, Own)
        plain = {"layouts": False} if self.function.declaration.stochastic else {}
        telling = {} if self._telling_shapes is None else {"shapes": self._telling_shapes}
        return super().calls(**{**telling, **restrictions, **plain, "steady": True})

    @cached_property
    def _telling_shapes(self) -> tuple[Shapes, ...] | None:
        """The shapes to which the calls are restricted, if the Function takes any of those with which most is said."""
        telling = _TELLING_SHAPES.get(self.property_id)
        return None if telling is None else tuple(filter(telling, shape_tuples(self.function))) or None

    def recasts(self, call: Call) -> tuple[Call, ...]:
        """The call in every dtype, its own first: nobody else looks at them."""
        return (call, *(recast(call, dtype) for dtype in self.dtypes if dtype != call.dtype))

    def example(self, call: Call) -> Example:
        self.tried.append(call)
        return super().example(call)

    def script(self, failure: dict[str, Any]) -> dict[str, str]:
        if not failure.get("call"):
            return {}
        assert isinstance(self.function, Own)
        source, reason = self.function.declaration.source()
        if self.property_id == "VJP-FD" and self.function.soft is not None:
            source, reason = "", "the derivative is that of the declared soft function"
        script, problem = own_script(self, self.claim_id, failure, source, reason)
        return {"script": script} if script else {"no_script": problem}

    @contextmanager
    def blaming_the_function(self) -> Iterator[None]:
        """Report an exception as a failure, unless the Function may refuse such a call: loudly, and only as it is."""
        self.tried = []
        with super().blaming_the_function():
            yield

    def judge_exception(self, call: Call, raised: Exception, *, hint: str = "") -> None:
        what = next(filter(None, map(self._refused, self.tried)), None)
        if what is not None:
            self.record.excuse_with(f"{what}: {told(raised)}")
            return
        if self._plain_fails(call):
            hint = "if such a call is outside of its domain, declare a narrower one"
        super().judge_exception(call, raised, hint=hint)

    def wrong_value(self, call: Call, what: str, **details: Any) -> NoReturn:
        # Whether a second derivative is wrong or detached depends on it.
        follows = self._follows(call) if explaining() or self.property_id.startswith("DBL") else None
        super().wrong_value(call, what, **(details if follows is None else {**details, "hint": FOLLOWS[follows]}))

    def _follows(self, call: Call) -> str | None:
        """The property by which this failure is told best, if that is another one."""
        other = _Judge(self.implementation, self.function, self.device, "VJP-REF")
        plain = _contiguous(call)
        if self.property_id.startswith("DBL"):
            return None if other.true_to_finite_differences(Example(other, plain)) else "VJP-FD"
        if not other.right(plain):
            return None if self.property_id in _PLAIN else "VJP-REF"
        inputs = with_cotangents(call, "contiguous")
        found = None
        if inputs != plain and not other.right(inputs):
            found = "FWD-LAYOUT"
        elif inputs != call and not other.right(call):
            found = "VJP-COTANGENT-LAYOUT"
        return None if found == self.property_id else found

    def _refused(self, call: Call) -> str | None:
        """What the Function refuses about a call, given that it takes one like it without that."""
        plain = _contiguous(call)
        if self.property_id.startswith("BATCH") and self._runs(plain):
            return "batching"
        if any(isinstance(a, Tensor) and 0 in a.shape for a in call.args):
            return _EMPTY
        if (
            (plain != call or self.property_id in _ABOUT_LAYOUTS)
            and self._runs(plain)
            and not self._runs_laid_out(call)
        ):
            return "tensors that are not contiguous"
        return None

    def _runs_laid_out(self, call: Call) -> bool:
        """Whether it takes the inputs in their layouts, with contiguous cotangents."""
        example = Example(self, with_cotangents(call, "contiguous"))
        layouts = (None, *(example.input_layouts if self.property_id in _ABOUT_LAYOUTS else ()))
        return all(self._runs(with_cotangents(call, "contiguous"), layout) for layout in layouts)

    def _plain_fails(self, call: Call) -> bool:
        """Whether the forward alone refuses such a call."""
        example = Example(self, _contiguous(call))
        try:
            example.outputs()
        except Exception:  # noqa: BLE001 - whatever it is, it does not run
            return True
        return False

    def _runs(self, call: Call, layout: str | None = None) -> bool:
        example = Example(self, call)
        try:
            primals = example.fresh_primals(layout)
            _, pullback = self.implementation.vjp(example.f, primals, track=example.track)
            pullback(example.cotangents)
        except Exception:  # noqa: BLE001 - whatever it is, it does not run
            return False
        return True

    def assert_second_order(self, call: Call, second: SecondOrder) -> None:
        """As of any Function; but one that refuses second derivatives loudly does nothing wrong."""
        refusal = second.refusal
        if second.detached:
            # `grad` leaves out what its inputs do not lead to, so that it never meets the node that would raise.
            loss = second.title.split(",")[0]
            refusal = second_order(Example(self, call), loss, self.engines[-1]).refusal
        if refusal is not None:
            self.record.excuse_with(f"second derivatives: {told(refusal)}")
            self.record.checks += 1
        elif self._defined(call):
            self._assert_derived(call, second)

    def _assert_derived(self, call: Call, second: SecondOrder) -> None:
        """The second derivative is right; one that is wrong since no input leads to it is detached."""
        try:
            super().assert_second_order(call, second)
        except Broken as broken:
            found = broken.finding
            leads = any(g is not None for g in second.gradients[: len(call.tensors)])
            if leads or found.got == "nan" or found.hint in FOLLOWS.values():
                raise
            super().fail(call, found.what, got=DETACHED, expected=found.expected, hint=found.hint)

    def rounding(self, gradients: Sequence[Any], direction: Sequence[Any]) -> float:
        outputs = self.function.outputs
        given = [o.dtypes[d] for o in outputs for d in ("float64", "complex128") if o.dtypes.get(d) in PRECISION]
        # Cotangents of outputs in a lower precision are rounded to it.
        share = max(inexact(PRECISION[kind].unit, 1) for kind in (*given, "float64"))
        # What is differentiated is itself computed, and zero there may be a little more.
        moved = sum(float(np.sum(np.abs(u))) for u in direction if u is not None)
        computed = share * absolute_terms(gradients, direction) + NOISE * PRECISION["float64"].unit * moved
        return super().rounding(gradients, direction) + self.conditioning * computed

    def assert_received(self, example: Example, gradients: Sequence[Any]) -> None:
        """As of any Function; but None is as good as a gradient of zeros."""
        expected = example.expected_gradients()
        zero = [e is not None and not np.any(e.value) for e in expected]
        known = [e if g is None and z else g for g, e, z in zip(gradients, expected, zero, strict=True)]
        super().assert_received(example, known)

    def assert_returned(self, example: Example, gradients: Sequence[Any]) -> None:
        """Nothing: that the engine sums and casts gradients to fit is what users rely on."""

    def assert_unrecorded(self, example: Example, outputs: Sequence[Any]) -> None:
        """As of any Function; but a view requires grad if its base does, in torch's own operations as well."""
        super().assert_unrecorded(example, [y for y in outputs if not example.may_be_view(y)])

    def assert_close(
        self, call: Call, whats: Sequence[str], *, got: Sequence[Any], expected: Sequence[Tracked | None],
        slack: float = SAFETY, hint: str = "",
    ) -> None:  # fmt: skip
        """As of any Function; but no gradient is as good as one of zeros."""
        pairs = zip(got, expected, strict=True)
        known = [np.zeros(e.shape, e.dtype) if g is None and e is not None else g for g, e in pairs]
        checks, worst = self.record.checks, dict(self.record.worst_by_dtype)
        try:
            super().assert_close(call, whats, got=known, expected=expected, slack=slack, hint=hint)
        except Broken:
            if call.dtype not in noise.DTYPES:
                raise
            self.record.checks, self.record.worst_by_dtype = checks, worst
            wider = self._as_noisy(call, whats, expected)
            super().assert_close(call, whats, got=known, expected=wider, slack=slack, hint=hint)

    def _as_noisy(self, call: Call, whats: Sequence[str], expected: Sequence[Tracked | None]) -> list[Tracked | None]:
        """What is expected, off by what roundings inside do to the plain call."""
        known, gradients = noise.noise(self, _contiguous(call)), Example(self, call).names
        # What has a name of its own is made of gradients.
        largest = max((known[name] for name in gradients if name in known), default=0.0)
        pairs = zip(whats, expected, strict=True)
        return [None if e is None else e.widened(known.get(what, largest)) for what, e in pairs]

    def assert_zero(self, call: Call, whats: Sequence[str], *, got: Sequence[Any], hint: str = "") -> None:
        """As of any Function, where its outputs are finite."""
        if self._defined(call):
            super().assert_zero(call, whats, got=got, hint=hint)

    def _defined(self, call: Call) -> bool:
        """Whether the outputs of a call are finite: elsewhere nothing can be said of derivatives."""
        return all(bool(np.all(np.isfinite(y.value))) for y in Example(self, call).expected_outputs)

    def assert_same(
        self, call: Call, whats: Sequence[str], *, got: Sequence[Any], expected: Sequence[Any], hint: str = ""
    ) -> None:
        """Each tensor equals its counterpart but for rounding.

        Not bit for bit: libraries choose their order of summation by where in memory a tensor lies.
        """
        near = [None if y is None else self._rounded(call, self._array(y)) for y in expected]
        self.assert_close(call, whats, got=list(got), expected=near, slack=1.0, hint=hint)

    def _rounded(self, call: Call, values: Any) -> Tracked:
        """Values that are off by the order of a sum over all elements of an argument."""
        if values.dtype.kind not in "fc":
            return Tracked.exact(values, "float64")
        largest = float(np.max(np.abs(values), initial=0.0, where=np.isfinite(values)))
        terms = max(math.prod(tensor.shape) for tensor in call.tensors)
        error = self.conditioning * inexact(PRECISION[call.dtype].unit, terms) * (1 + largest)
        return Tracked(values, np.full(values.shape, error), PRECISION["float64"])

    def assert_finite(
        self, call: Call, whats: Sequence[str], *, got: Sequence[Any], expected: Sequence[Tracked | None], given: bool
    ) -> None:
        """Each element is finite where the outputs are, and do not change without bound along it."""
        example = Example(self, call)
        # Where a product of two inputs overflows it is no news that one of three does.
        root = math.sqrt(_largest(call.dtype))
        moderate = all(bool(np.all(np.abs(x) <= root)) for x in example.values if isinstance(x, np.ndarray))
        given = given and moderate
        if moderate and not given:
            self._assert_numbers(example)
        for number, (what, mine, theirs) in enumerate(zip(whats, got, expected, strict=True)):
            if not given or mine is None or theirs is None:
                continue
            array = self.implementation.numpy(mine)
            self.record.checks += 1
            # What a surrogate should be is not known, but for that it is a number.
            unknown = self.function.surrogate and self.function.soft is None
            for place in list(np.argwhere(np.isnan(array) if unknown else ~np.isfinite(array)))[:4]:
                index = tuple(int(i) for i in place)
                slope = 0.0 if unknown else _slope(example, number, index)
                if slope is not None and abs(slope) < _largest(call.dtype) / 4:
                    hint = "the outputs are finite there; guard what overflows, or is 0 / 0, inside backward"
                    expected_ = f"about {slope:.3g}"
                    self.wrong_value(call, f"{what} at {index}", got=array[index], expected=expected_, hint=hint)

    def _assert_numbers(self, example: Example) -> None:
        """No output is NaN where in double precision it is finite."""
        for name, y, expected in zip(example.output_names, example.outputs(), example.expected_outputs, strict=True):
            wrong = np.argwhere(np.isnan(self.implementation.numpy(y)) & np.isfinite(expected.value))
            if len(wrong):
                index = tuple(int(i) for i in wrong[0])
                hint = "in double precision it is finite; something inside overflows, and is divided or subtracted"
                what = f"{name} at {index}"
                self.wrong_value(example.call, what, got="nan", expected=expected.value[index], hint=hint)


class _Judge(OwnSubject):
    """Looks whether a call is right, and not what follows from it if it is wrong."""

    def wrong_value(self, call: Call, what: str, **details: Any) -> NoReturn:
        self.fail(call, what, **details)

    def right(self, call: Call) -> bool:
        """Whether outputs and gradients of a call are not seen to be wrong."""
        return self._passes(self._assert_results, Example(self, call))

    def true_to_finite_differences(self, example: Example) -> bool:
        """Whether the first derivative at a call is not seen to be wrong."""
        unknown = self.function.surrogate and self.function.soft is None
        return unknown or self._passes(lambda e: self.assert_first_order(e.call, first_order(e)), example)

    def _assert_results(self, example: Example) -> None:
        expected = example.expected_results()
        self.assert_close(example.call, example.result_names, got=example.results(), expected=expected)

    def _passes(self, look: Callable[[Example], None], example: Example) -> bool:
        try:
            look(example)
        except Broken:
            return False
        except Exception:  # noqa: BLE001 - what raises is another fault than a wrong number
            return True
        return True


def _has_layouts(shapes: Shapes) -> bool:
    """Whether one of the tensors can lie in more than one order."""
    return any(sum(side > 1 for side in shape) > 1 for shape in shapes)


def _are_flat(shapes: Shapes) -> bool:
    """Whether no tensor has more than one dimension."""
    return all(len(shape) < 2 for shape in shapes)


# The shapes with which properties about layouts say something.
_TELLING_SHAPES: dict[str, Callable[[Shapes], bool]] = {
    "FWD-LAYOUT": _has_layouts,
    "VJP-COTANGENT-LAYOUT": lambda shapes: _has_layouts(shapes) or _are_flat(shapes),
}


def _contiguous(call: Call) -> Call:
    args = tuple(replace(a, layout="contiguous") if isinstance(a, Tensor) else a for a in call.args)
    return with_cotangents(replace(call, args=args), "contiguous")


def _largest(dtype: str) -> float:
    return float(PRECISION[dtype].largest)


def _slope(example: Example, number: int, index: tuple[int, ...]) -> float | None:
    """The slope of <cotangents, outputs> along one entry in double precision; None unless it is plainly finite.

    Both sides and two steps have to agree on it.
    """
    compute, slot = example.function.soft or example.function.forward, example.slots[number]
    arguments = example.reference_arguments(exact=True)
    x = np.array(arguments[slot])
    if np.iscomplexobj(x):
        return None
    size = abs(float(x[index])) or 1.0
    found = []
    with np.errstate(all="ignore"):
        for step in (2.0**-12 * size, -(2.0**-12) * size, 2.0**-16 * size, -(2.0**-16) * size):
            ends = []
            for moved in (step, 0.0):
                other = x.copy()
                other[index] += moved
                outputs = compute(*(other if n == slot else a for n, a in enumerate(arguments)))
                pairs = zip(example.cotangent_values, outputs, strict=True)
                ends.append(sum(float(np.sum(np.real(np.conj(g) * y))) for g, y in pairs if g is not None))
            found.append((ends[0] - ends[1]) / step)
    if not np.all(np.isfinite(found)):
        return None
    spread, mean = max(found) - min(found), sum(found) / len(found)
    return mean if spread <= 0.05 * abs(mean) or max(map(abs, found)) == 0 else None
