"""Tensors and small Functions of the NumPy model, for its tests."""

# The methods of a Function have parameters that not each of them uses.
# ruff: noqa: ARG005

from __future__ import annotations

import numpy as np

from autograd_conformance.reference.model import Function
from autograd_conformance.reference.model_namespace import xp
from autograd_conformance.reference.model_tensors import Tensor

REAL = np.array([[0.7, -1.3, 2.1], [0.4, 1.9, -0.6]])
OTHER = np.array([[1.1, 0.3, -0.8], [2.2, -1.7, 0.9]])


def leaf(values, dtype=None):
    return Tensor(np.array(values, dtype)).requires_grad_()


def custom(forward, backward=None, *, setup=None, jvp=None, name="Custom"):
    """A Function of the given methods."""
    methods = {"forward": forward, "backward": backward, "setup_context": setup, "jvp": jvp}
    return type(name, (Function,), {key: staticmethod(f) for key, f in methods.items() if f is not None})


def values(tensors):
    return [None if t is None else t.data.tolist() for t in tensors]


identity = custom(lambda ctx, x: xp.copy(x), lambda ctx, g: g)


def save_input(ctx, x):
    ctx.save_for_backward(x)
    return x * x


square = custom(save_input, lambda ctx, g: 2 * g * ctx.saved_tensors[0])


def double_in_place(ctx, x):
    x *= 2
    ctx.mark_dirty(x)
    return x


doubled = custom(double_in_place, lambda ctx, g: 2 * g)
