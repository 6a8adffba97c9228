"""Results in double precision: their numbers are not all of single precision."""

from dataclasses import replace
from functools import partial

from autograd_conformance.harness.check.declaration.facts import facts_of
from autograd_conformance.harness.testing.marks import holds
from autograd_conformance.strategies.precision import in_double
from autograd_conformance.strategies.scope import PLAIN

DOUBLE = ("float64", "complex128")


def _coarse(function, *, outputs):
    """Whether there are outputs, or gradients, that looked like single precision in the first calls."""
    return any(name.startswith("output") is outputs for name in facts_of(function).coarse)


def _assert_precise(subject, data, *, outputs):
    calls = subject.calls(replace(PLAIN, mask="full", cotangent_layouts=False, specials="none"))
    example = subject.example(data.draw(calls.map(partial(in_double, function=subject.function)), label="call"))
    subject.assert_precise(example, example.output_names if outputs else example.names)


@holds("FWD-DTYPE", where=partial(_coarse, outputs=True), dtypes=DOUBLE, examples=0.3, variant="precision", own=True)
def test_fwd_dtype_precision(subject, data):
    """Outputs in double precision have numbers that single precision lacks."""
    _assert_precise(subject, data, outputs=True)


@holds("VJP-FIT", where=partial(_coarse, outputs=False), dtypes=DOUBLE, examples=0.3, variant="precision", own=True)
def test_vjp_fit_precision(subject, data):
    """Gradients in double precision have numbers that single precision lacks."""
    _assert_precise(subject, data, outputs=False)
