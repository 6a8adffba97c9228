"""The bench that a scenario works at, with one implementation, and the Functions that several scenarios use."""

# The methods of a Function have parameters that not each of them uses.
# ruff: noqa: ARG005

from __future__ import annotations

import numpy as np

from autograd_conformance.selftests.implementations.model_functions import double_in_place, save_input


class Bench:
    """What a scenario works with: one implementation and shorthands."""

    def __init__(self, implementation):
        self.i, self.xp, self.ag = implementation, implementation.xp, implementation.ag

    def array(self, values, dtype="float64"):
        return self.i.array(np.array(values), dtype, "cpu")

    def custom(self, forward, backward=None, *, setup=None, jvp=None, **methods):
        methods |= {"forward": forward, "backward": backward, "setup_context": setup, "jvp": jvp}
        given = {name: staticmethod(f) for name, f in methods.items() if f is not None}
        return self.i.function(type("Custom", (self.ag.Function,), given))

    def ones(self, y):
        return self.array(np.ones(tuple(y.shape)), self.i.describe(y).dtype)

    def gradients(self, f, *primals, track=None):
        """Gradients of the sum of all outputs."""
        outputs, pullback = self.i.vjp(f, primals, track=track)
        return pullback([self.ones(y) if self.i.is_tensor(y) else None for y in outputs if self.i.is_tensor(y)])

    def returning(self, *made, args=None, dtype="float64", track=None):
        """Gradients of a Function whose backward returns what ``made`` makes of the cotangent."""
        f = self.custom(lambda ctx, x, *_: x * 1, lambda ctx, g: tuple(m(g) if callable(m) else m for m in made))
        args = args or [self.array([1.0, 2.0], dtype)]
        return self.gradients(f, *args, track=track)

    def plain(self, value):
        """A value as both implementations can be compared by."""
        if self.i.is_tensor(value):
            return self.i.describe(value), np.round(self.i.numpy(value), 12).tolist()
        return type(value)(map(self.plain, value)) if isinstance(value, (tuple, list)) else value

    def outcome(self, f):
        try:
            return "value", self.plain(f(self))
        except self.i.refusals as refusal:
            return "crash" if "INTERNAL ASSERT" in str(refusal) else "refusal", None


def times_saved(ctx, g):
    return 2 * g * ctx.saved_tensors[0]


def same(g):
    return g


def square(b):
    return b.custom(save_input, times_saved)


def doubled(b):
    return b.custom(double_in_place, lambda ctx, g: 2 * g)


def non_leaf(b, f, n=3):
    """Gradient of the sum of f's output with respect to the leaf behind its argument."""
    return b.gradients(lambda x: f(x * 1), b.array(np.arange(1.0, n + 1)))


def under_no_grad(b, f, x):
    with b.i.no_grad():
        return f(x)


def times(x, y=3):
    x *= y
