"""The numbers in half precision, on average over many calls."""

from dataclasses import replace

from autograd_conformance.harness.check.bounds.builtin_autograd import gradients_of_formula
from autograd_conformance.harness.check.declaration.facts import facts_of
from autograd_conformance.harness.outcomes import one_line
from autograd_conformance.harness.testing.averages import GRADIENTS, OUTPUTS, SECOND
from autograd_conformance.harness.testing.marks import holds
from autograd_conformance.harness.testing.transforms import second_order
from autograd_conformance.strategies.scope import PLAIN
from autograd_conformance.strategies.shapes import shape_tuples, small_sums

HALF = ("float16", "bfloat16")


def _comparable(function):
    """Whether the Function or its reference takes more than half precision, and tensors without a zero side."""
    precise = function.dtypes[0] not in HALF or facts_of(function).refers_in
    return precise and bool(small_sums(shape_tuples(function)))


def _assert_unbiased(subject, data, results):
    scope = replace(PLAIN, mask="full", cotangent_layouts=False, specials="none")
    calls = subject.calls(scope, shapes=small_sums(shape_tuples(subject.function)))
    for call in subject.recasts(data.draw(calls, label="call")):
        subject.assert_unbiased(subject.referred(call), results, gradients_of_formula)


@holds("FWD-VALUE", where=_comparable, dtypes=HALF, examples=0.04, variant="averages", own=True)
def test_fwd_value_averages(subject, data):
    """On average over many calls, outputs in half precision are not off."""
    _assert_unbiased(subject, data, OUTPUTS)


@holds("VJP-REF", where=_comparable, dtypes=HALF, examples=0.08, variant="averages", own=True)
def test_vjp_ref_averages(subject, data):
    """On average over many calls, gradients in half precision are not off."""
    _assert_unbiased(subject, data, GRADIENTS)


@holds(
    "DBL-CORRECT",
    where=lambda f: f.second is not None and f.double == "supported" and bool(small_sums(shape_tuples(f))),
    needs="double_backward",
    dtypes=HALF,
    examples=0.16,
    variant="averages",
    own=True,
)
def test_dbl_correct_averages(subject, data):
    """On average over many calls, second derivatives in half precision are those of the reference."""
    scope = replace(PLAIN, mask="full", cotangent_layouts=False, specials="none")
    calls = subject.calls(scope, shapes=small_sums(shape_tuples(subject.function)))
    for call in subject.recasts(data.draw(calls, label="call")):
        example = subject.example(call)
        second = second_order(example, "cotangents", "grad")
        refusal = subject.policy.second_refusal(call, second)
        if refusal is None and second.refusal is not None:
            raise second.refusal
        if refusal is None:
            subject.assert_unbiased(example, SECOND, gradients_of_formula)
        else:
            subject.record.excuse_with(f"second derivatives: {one_line(refusal)}")
