"""A layout is the cause only if a contiguous copy of the same values is right."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("torch")

import torch
from torch.autograd import Function

from autograd_conformance.harness.check import Declaration
from autograd_conformance.harness.check.explain.causes import Failure
from autograd_conformance.harness.outcomes import Broken, Finding
from autograd_conformance.strategies.calls import Call, Cotangent, Tensor, copied, parse, tensor_values
from autograd_conformance.suites.declared import Checked, claims


class Cancelling(Function):
    """Rows without their mean, divided by their deviation. Backward cancels in half precision."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        wide = x.float() if x.dtype in (torch.half, torch.bfloat16) else x
        variance, mean = torch.var_mean(wide, -1, correction=0, keepdim=True)
        return ((wide - mean) * torch.rsqrt(variance + 1e-5)).to(x.dtype)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        mean = x.mean(-1, keepdim=True)
        variance = (x * x).mean(-1, keepdim=True) - mean * mean
        r = torch.rsqrt(variance.clamp(min=0) + 1e-5)
        h = (x - mean) * r
        return r * (g - g.mean(-1, keepdim=True) - h * (g * h).mean(-1, keepdim=True))


class InMemory(Function):
    """Twice the numbers of the memory, whatever the strides."""

    @staticmethod
    def forward(ctx, x):
        ctx.strided = not x.is_contiguous()
        return 2 * x

    @staticmethod
    def backward(ctx, g):
        return 3 * g if ctx.strided else 2 * g


def call_of(name, layout="expanded", cotangent="contiguous"):
    tensor = Tensor((8, 2), "float16", requires_grad=True, layout=layout, fill="dense")
    return Call(name, (tensor,), (Cotangent("ramp", layout=cotangent),), seed=1838)


def cause(function, call):
    claim, _ = claims()["VJP_CHAIN_instances"]
    (subject,) = Checked(Declaration(function, "float[b,n]"), seed=0).subjects(claim)
    finding = Finding("gradient", "1.0", "2.0", repr(call), compared=(1.0, 2.0))
    return Failure(subject, Broken("VJP-CHAIN", "", "", finding)).cause()


@pytest.mark.parametrize("layout", ["expanded", "strided", "transposed"])
def test_a_copy_has_the_values_and_no_layout(layout):
    (subject,) = Checked(Declaration(InMemory, "float[b,n]"), seed=0).subjects(claims()["VJP_FD"][0])
    call = call_of("InMemory", layout, layout)
    plain = copied(call)
    assert np.array_equal(tensor_values(call, subject.function)[0], tensor_values(plain, subject.function)[0])
    example, other = subject.made(plain), subject.made(call)
    assert example.primals[0].is_contiguous()
    assert torch.equal(example.primals[0], other.primals[0])
    assert torch.equal(example.cotangents[0], other.cotangents[0])
    assert example.cotangents[0].is_contiguous()
    assert copied(plain) == plain == parse(repr(plain))


def test_values_that_a_layout_repeats_are_no_fault_of_the_layout():
    assert cause(Cancelling, call_of("Cancelling")) == "VJP-REF"
    assert cause(InMemory, call_of("InMemory")) == "FWD-LAYOUT"
