"""Derivatives at the identity and other matrices with equal eigenvalues."""

from dataclasses import replace

from autograd_conformance.harness.testing import transforms
from autograd_conformance.harness.testing.marks import holds
from autograd_conformance.reference.kinks import REACHES
from autograd_conformance.strategies.matrices import at_matrices, matrix_shapes
from autograd_conformance.strategies.scope import PLAIN

DOUBLE = ("float64", "complex128")


def _has_matrices(function):
    """Whether it takes square matrices, and slopes can be measured near them."""
    derived = function.computes_in in REACHES and (function.soft or not function.surrogate)
    return bool(derived) and bool(matrix_shapes(function))


def _calls(subject, data):
    scope = replace(PLAIN, mask="full", cotangent_layouts=False, specials="none")
    calls = subject.calls(scope, shapes=matrix_shapes(subject.function))
    return at_matrices(data.draw(calls, label="call"), subject.function)


@holds("VJP-FD", where=_has_matrices, dtypes=DOUBLE, examples=0.02, variant="matrices", own=True)
def test_vjp_fd_matrices(subject, data):
    """Where the function is differentiable at such a matrix, its gradient is a number."""
    for call in _calls(subject, data):
        with subject.choice(call):
            example = subject.example(call)
            subject.assert_exists(example, "slope of the drawn direction", transforms.first_order(example))


@holds(
    "DBL-CORRECT",
    where=lambda f: _has_matrices(f) and f.double == "supported" and not f.surrogate,
    dtypes=DOUBLE,
    needs="double_backward",
    examples=0.02,
    variant="matrices",
    own=True,
)
def test_dbl_correct_matrices(subject, data):
    """Where the gradient is differentiable at such a matrix, the second derivative is a number."""
    loss = subject.draw(data, transforms.LOSSES, "loss")
    for call in _calls(subject, data):
        with subject.choice(call):
            example = subject.example(call)
            second = transforms.second_order(example, loss, subject.engines[0])
            subject.assert_exists(example, f"second derivative ({loss}, through {second.engine})", second)
