"""Nothing is found wrong with right Functions of users, and what is wrong next to them is found."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

import numpy as np
import torch

from autograd_conformance import implementations
from autograd_conformance.harness.check import Declaration
from autograd_conformance.harness.check.discovery.discovery import discover
from autograd_conformance.harness.check.oracle.oracle import Oracle
from autograd_conformance.harness.check.report.verdicts import verdict
from autograd_conformance.harness.outcomes import UsageProblem
from autograd_conformance.reference.definitions import Array
from autograd_conformance.reference.rounding import Tracked
from autograd_conformance.selftests.checking import faults_of
from autograd_conformance.selftests.specimens import choices as right
from autograd_conformance.selftests.specimens.fields import DECLARATIONS
from autograd_conformance.strategies.calls import Call, Cotangent, Tensor, tensor_values
from autograd_conformance.suites.declared import Checked, claims

TORCH = implementations.load("torch")

# What the numbers of a call are compared in.
_VALUES = ("FWD-VALUE", "FWD-LAYOUT", "FWD-EMPTY", "VJP-REF", "VJP-FD", "VJP-CHAIN", "VJP-COTANGENT-LAYOUT")


def test_no_gradient_is_claimed_where_a_slope_is_infinite():
    """The root's gradient at 0 is 0 / 0 for a cotangent of 0, as that of torch's own is."""
    declaration = next(d for name, d in DECLARATIONS.items() if name == "RootOfAny")
    assert faults_of(declaration, "VJP-UNUSED", "VJP-LINEAR", "VJP-FINITE", "VJP-FD", shrink=False) == []


def test_observing_changes_nothing():
    tensor = torch.ones(2, dtype=torch.float64)
    TORCH.numpy(tensor)
    tensor.untyped_storage().resize_(0)
    assert tensor.untyped_storage().size() == 0


def test_calls_that_the_reference_refuses_are_left_out_and_counted():
    def picky(x):
        if x.numel() < 2:
            raise ValueError("two at least")
        return torch.relu(x)

    line = next(Checked(Declaration(right.Relu, "float[n]", reference=picky), seed=0).lines("FWD-VALUE"))
    assert line["outcome"] == "pass"
    assert 0 < line["excused"] < line["examples"]

    def once_only(x):
        once_only.calls += 1
        if once_only.calls > 1:
            raise ValueError("never again")
        return torch.relu(x)

    once_only.calls = 0
    line = next(Checked(Declaration(right.Relu, "float[n]", reference=once_only), seed=0).lines("FWD-VALUE"))
    judged = verdict(line)
    assert judged is not None
    assert not judged.fault
    assert "the reference: ValueError: never again" in line["reason"]


def test_a_reference_has_as_many_outputs_as_the_function():
    with pytest.raises(UsageProblem, match="its reference returns 1 output, but the Function returns 2"):
        discover(Declaration(right.Sorted, "float[n]", reference=lambda x: torch.sort(x).values), TORCH)


# Where a result jumps.


def _errors(function, values, dtype="float64"):
    oracle = Oracle(TORCH, function, [Array(name="x", dims="n")], outputs=[True], dtype="float64", device="cpu")
    given = Tracked.exact(np.asarray(values, float), dtype)
    ones = Tracked.exact(np.ones_like(given.value), dtype)
    return oracle.forward(given)[0].widest, oracle.vjp((ones,), given)[0].widest


def test_nothing_is_claimed_where_a_result_jumps():
    forward, gradient = _errors(torch.round, [0.5, 0.75, 2.5])
    assert np.isinf(forward).tolist() == [True, False, True]
    assert np.all(np.isfinite(gradient))
    forward, gradient = _errors(torch.relu, [0.0, 1.0, -1.0])
    assert np.all(np.isfinite(forward))
    assert np.isinf(gradient).tolist() == [True, False, False]


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
@pytest.mark.parametrize("function", [torch.sin, torch.square, lambda x: x**4, torch.exp, lambda x: 0 * x])
def test_what_is_smooth_does_not_jump(function, dtype):
    forward, gradient = _errors(function, [0.0, -0.5, 1e-3, 3.0], dtype)
    assert np.all(np.isfinite(forward))
    assert np.all(np.isfinite(gradient))


def test_what_changes_from_call_to_call_does_not_jump():
    count = iter(range(10**6))
    forward, _ = _errors(lambda x: x + next(count), [1.0, 2.0])
    assert np.all(np.isfinite(forward))


def test_arguments_of_one_shape_are_equal_on_purpose_alone():
    function = next(
        Checked(Declaration(torch.mul, "float[n]", "float[n]"), seed=0).subjects(claims()["VJP_FD"][0])
    ).function
    tensors = (Tensor((3,), "float64", True, fill="ramp"),) * 2
    x, y = tensor_values(Call("mul", tensors, (Cotangent(),), smooth=True), function)
    assert not np.any(x == y)
    x, y = tensor_values(Call("mul", tensors, (Cotangent(),)), function)
    assert np.all(x == y)


def test_the_most_precise_dtype_is_the_plain_one_in_whatever_order_they_are_declared():
    declared = Declaration(right.Relu, "float[n]", dtypes=("float16", "float32", "float64"))
    assert declared.candidates == ("float64", "float32", "float16")


class LogSoftmax(torch.autograd.Function):
    """In half precision the square of the sum of a long row overflows, and so does what backward then sums."""

    @staticmethod
    def forward(ctx, x):
        y = torch.log_softmax(x, -1)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return g - y.exp() * g.sum(-1, keepdim=True)


@pytest.mark.parametrize("seed", range(4), ids="seed{}".format)
def test_a_composition_that_overflows_by_itself_says_nothing(seed):
    declaration = Declaration(LogSoftmax, "float[n]", sizes={"n": (257,)})
    assert {line["outcome"] for line in Checked(declaration, seed=seed).lines("VJP-CHAIN")} == {"pass"}
