"""Tensors of a subclass, and sparse ones, are passed as they are: the gradients of the other arguments are checked."""

from __future__ import annotations

import os
import sys

import pytest

pytest.importorskip("torch")

from autograd_conformance.selftests.watching.watched_program import AMPLE, HEAD, rows_of, watched

if not hasattr(os, "fork") or sys.platform == "darwin":
    pytest.skip("on this platform no process can be forked", allow_module_level=True)

PROGRAM = f"""{HEAD}
class Wrapped(torch.Tensor):
    @staticmethod
    def __new__(cls, data):
        return torch.Tensor._make_wrapper_subclass(cls, data.shape, dtype=data.dtype)

    def __init__(self, data):
        self.held = data

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        if function is torch.ops.aten.detach.default:
            return Wrapped(args[0].held)
        raise NotImplementedError(function)

def sparse(ctx, a, x):
    ctx.a = a
    return torch.sparse.mm(a, x)

def wrapped(ctx, a, x):
    ctx.a = a
    return a.held @ x

def saved(ctx, a, x):
    ctx.save_for_backward(a, x)
    return a.held @ x

def of_both(ctx, a):
    return a.held * 2

a, x = torch.randn(5, 4), torch.randn(4, 3, requires_grad=True)
a[a < 0.5] = 0
held, trained = Wrapped(a), Wrapped(a).requires_grad_()
for name, factor in (("Right", 1), ("Wrong", 3)):
    of_sparse = lambda ctx, g, factor=factor: (None, factor * torch.sparse.mm(ctx.a.t(), g))
    of_wrapped = lambda ctx, g, factor=factor: (None, factor * ctx.a.held.t() @ g)
    made(name + "Sparse", sparse, of_sparse).apply(a.to_sparse(), x).sum().backward()
    made(name + "Wrapped", wrapped, of_wrapped).apply(held, x).sum().backward()
    made(name + "Trained", wrapped, of_wrapped).apply(trained, x).sum().backward()
    of_saved = lambda ctx, g, factor=factor: (None, factor * ctx.saved_tensors[0].held.t() @ g)
    made(name + "Saved", saved, of_saved).apply(held, x).sum().backward()
    both = lambda ctx, g, factor=factor: (factor * torch.ones(5, 4), factor * ctx.a.held.t() @ g)
    made(name + "Returned", wrapped, both).apply(held, x).sum().backward()
    made(name + "Alone", of_both, lambda ctx, g: g).apply(trained)
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    return watched(tmp_path_factory.mktemp("opaque"), PROGRAM, *AMPLE, torch=True)[0].stderr


@pytest.mark.parametrize("kind", ["Sparse", "Wrapped", "Trained", "Saved", "Returned"])
def test_the_gradient_of_the_other_argument_is_checked(found, kind):
    rows = rows_of(found)
    assert rows[f"Right{kind}"].startswith("holds"), found
    assert rows[f"Wrong{kind}"].startswith("DIFFERS"), found


def test_a_call_with_nothing_else_is_left_out_with_the_reason(found):
    assert "RightAlone: it is not checked: argument 0 (a) is a Wrapped tensor, and no other argument has" in found
