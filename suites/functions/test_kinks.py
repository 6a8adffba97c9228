"""The gradients at kinks, ties and zeros."""

from dataclasses import replace
from functools import partial

from autograd_conformance.harness.testing.marks import holds
from autograd_conformance.reference.kinks import REACHES
from autograd_conformance.strategies.kinks import at_kinks, has_ties
from autograd_conformance.strategies.scope import PLAIN

DOUBLE = ("float64", "complex128")


def _has_slopes(function):
    """Whether slopes can be measured near a point: in half precision the steps between numbers are too long."""
    return function.computes_in in REACHES and (function.soft or not function.surrogate)


@holds(
    "VJP-FD",
    where=lambda f: _has_slopes(f) and has_ties(f),
    dtypes=DOUBLE,
    examples=0.3,
    variant="kinks",
    own=True,
)
def test_vjp_fd_kinks(subject, data):
    """At special values and equal entries, the gradients claim slopes that the function has nearby."""
    calls = subject.calls(replace(PLAIN, mask="full", cotangent_layouts=False, specials="none"))
    example = subject.example(data.draw(calls.map(partial(at_kinks, function=subject.function)), label="call"))
    subject.assert_among_slopes(example, example.run()[1])
