"""Derivatives of users' Functions at small values, where formulas switch to a series or to a guard."""

from dataclasses import replace

from autograd_conformance.harness.testing import transforms
from autograd_conformance.harness.testing.marks import holds
from autograd_conformance.strategies.magnitudes import SMALL, at_tiny, takes_tiny
from autograd_conformance.strategies.scope import SMOOTH

DOUBLE = ("float64", "complex128")


def _derives(function):
    return takes_tiny(function) and bool(function.soft or not function.surrogate)


def _derives_twice(function):
    return takes_tiny(function) and function.double == "supported" and not function.surrogate


def _drawn(subject, data):
    scope = replace(SMOOTH, layouts="contiguous", specials="none", cotangent_layouts=False)
    drawn = data.draw(subject.calls(scope), label="call")
    return subject.example(at_tiny(drawn, subject.function))


@holds("VJP-FD", where=_derives, dtypes=DOUBLE, examples=0.3, variant=SMALL, own=True)
def test_vjp_fd_small(subject, data):
    """The gradients at small values match finite differences."""
    example = _drawn(subject, data)
    subject.assert_first_order(example.call, transforms.first_order(example))


@holds(
    "DBL-CORRECT", where=_derives_twice, dtypes=DOUBLE, examples=0.2, needs="double_backward", variant=SMALL, own=True
)
def test_dbl_correct_small(subject, data):
    """Second derivatives at small values match finite differences."""
    example = _drawn(subject, data)
    subject.choose("loss", "cotangents")
    subject.choose("through", "grad")
    second = transforms.second_order(example, "cotangents", "grad")
    subject.assert_second_order(example.call, second)
