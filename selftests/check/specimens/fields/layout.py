"""Views, layouts, changes in place, missing gradients, and what ctx can carry."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from autograd_conformance.harness.check import Declaration


class Doubled(Function):
    """Changes its argument in place, and says so."""

    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(2)

    @staticmethod
    def backward(ctx, g):
        return 2 * g


class ClippedInPlace(Function):
    """It saves its output, which is its changed argument."""

    @staticmethod
    def forward(ctx, x):
        x.clamp_(min=0)
        ctx.mark_dirty(x)
        ctx.save_for_backward(x)
        return x

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return g * (y > 0)


class Strided(Function):
    """Windows by as_strided of a copy."""

    @staticmethod
    def forward(ctx, x):
        ctx.n = len(x)
        x = x.contiguous().resolve_neg()
        return x.as_strided((len(x) - 1, 2), (1, 1)).clone()

    @staticmethod
    def backward(ctx, g):
        out = g.new_zeros(ctx.n)
        out[:-1] += g[:, 0]
        out[1:] += g[:, 1]
        return out


class Transposed(Function):
    """A result that is not contiguous."""

    @staticmethod
    def forward(ctx, x):
        return (3 * x).mT

    @staticmethod
    def backward(ctx, g):
        return 3 * g.mT


class View(Function):
    """Returns a view of its argument."""

    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, g):
        return g


class Expanded(Function):
    """The gradient is an expanded scalar."""

    @staticmethod
    def forward(ctx, x):
        ctx.shape = x.shape
        return x.sum()

    @staticmethod
    def backward(ctx, g):
        return g.expand(ctx.shape)


class NoneForZero(Function):
    """The second factor has the power 0."""

    @staticmethod
    def forward(ctx, x, y, power):
        ctx.save_for_backward(x, y)
        ctx.power = power
        return x * y**power

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        k = ctx.power
        return g * y**k, g * x * k * y ** (k - 1) if k else None, None


class ManyOutputs(Function):
    """Two with gradients, a mask and a count without."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        mask, count = x > 0, torch.tensor(x.numel())
        ctx.mark_non_differentiable(mask, count)
        return x.square(), mask, 3 * x, count

    @staticmethod
    def backward(ctx, a, _, b, __):
        (x,) = ctx.saved_tensors
        return 2 * a * x + 3 * b


class Unmaterialized(Function):
    """Gradients of outputs that were not used are None, and skipped."""

    @staticmethod
    def forward(ctx, x, y):
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(x, y)
        return x * y, x + y

    @staticmethod
    def backward(ctx, a, b):
        x, y = ctx.saved_tensors
        gx = gy = None
        if a is not None:
            gx, gy = a * y.conj(), a * x.conj()
        if b is not None:
            gx, gy = (b, b) if gx is None else (gx + b, gy + b)
        return gx, gy


class Carrying(Function):
    """A namespace with numbers and a shape on ctx, and a tuple of them."""

    @staticmethod
    def forward(ctx, x, k):
        ctx.meta = SimpleNamespace(k=k, shape=tuple(x.shape))
        ctx.history = (k, "kept")
        return k * x.flatten()

    @staticmethod
    def backward(ctx, g):
        return (ctx.meta.k * g).reshape(ctx.meta.shape), None


class SavedView(Function):
    """Saves a view of its argument, made without a graph, so it refuses second derivatives."""

    @staticmethod
    def forward(ctx, x):
        first = x[:1]
        ctx.save_for_backward(first, x)
        return first * x

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        first, x = ctx.saved_tensors
        head = torch.zeros_like(x)
        head[:1] = (g * x).sum(0, keepdim=True)
        return g * first + head


class ThroughNumpy(Function):
    """Sine by NumPy. An empty tensor is passed by."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        if not x.numel():
            return x.clone()
        return torch.as_tensor(np.sin(x.resolve_neg().numpy(force=True)))

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * torch.cos(x)


class SetUp(Function):
    """In the style of setup_context, with a generated rule for vmap."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x, y):
        return x * y.sin()

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return g * y.sin(), g * x * y.cos()

    @staticmethod
    def jvp(ctx, tx, ty):
        x, y = ctx.saved_tensors
        return (0 if tx is None else tx * y.sin()) + (0 if ty is None else x * y.cos() * ty)


class Checkpointed(Function):
    """Runs its body again in backward."""

    @staticmethod
    def _body(x):
        return torch.tanh(x @ x.mT)

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return Checkpointed._body(x)

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        with torch.enable_grad():
            inner = x.detach().requires_grad_()
            torch.autograd.backward(Checkpointed._body(inner), g)
        return inner.grad


class Flipped(Function):
    """Backward passes on a flipped view without a copy."""

    @staticmethod
    def forward(ctx, x):
        return x.flip(0)

    @staticmethod
    def backward(ctx, g):
        return g.flip(0)


class Identity(Function):
    """Reverses gradients, as domain adaptation does."""

    @staticmethod
    def forward(ctx, x, strength):
        ctx.strength = strength
        return x.view_as(x)

    @staticmethod
    def backward(ctx, g):
        return -ctx.strength * g, None


class Interleaved(Function):
    """Two gradients are parts of one buffer."""

    @staticmethod
    def forward(ctx, x, y):
        return torch.stack((x, y), -1).flatten(-2)

    @staticmethod
    def backward(ctx, g):
        return g[..., 0::2], g[..., 1::2]


def _sized(lengths):
    """Concatenates and splits: made for some lengths, as a module would be."""

    class Split(Function):
        @staticmethod
        def forward(ctx, x):
            return tuple(part.clone() for part in x.split(lengths, -1))

        @staticmethod
        def backward(ctx, *gs):
            return torch.cat(gs, -1)

    return Split


class OptionalBias(Function):
    @staticmethod
    def forward(ctx, x, b):
        ctx.shape = None if b is None else b.shape
        return x.clone() if b is None else x + b

    @staticmethod
    def backward(ctx, g):
        return g, None if ctx.shape is None else g.sum_to_size(ctx.shape)


DECLARATIONS = (
    Declaration(Doubled, "number[...]", inplace=0),
    Declaration(ClippedInPlace, "float[n]", inplace=0),
    Declaration(Strided, "float[n]", sizes={"n": (2, 3, 5)}),
    Declaration(Transposed, "number[...,n,m]"),
    Declaration(View, "number[...]"),
    Declaration(Expanded, "number[...]"),
    Declaration(NoneForZero, "float[n]", "float[n] nonzero", "int(0..2)"),
    Declaration(ManyOutputs, "float[...]"),
    Declaration(Unmaterialized, "number[n]", "number[n]"),
    Declaration(Carrying, "float[n,m]", "float(0..1)"),
    Declaration(SavedView, "float[n,m]", once=True, sizes={"n": (1, 2, 3)}),
    Declaration(ThroughNumpy, "float[...]", once=True, dtypes=("float64", "float32")),
    Declaration(SetUp, "float[n]", "float[n]"),
    Declaration(Checkpointed, "float[n,m]", once=True),
    Declaration(Flipped, "number[n,m]"),
    Declaration(Identity, "float[...]", "0.5 | 1.0", surrogate=True),
    Declaration(Interleaved, "number[...,n]", "number[...,n]"),
    Declaration(_sized((1, 2)), "number[...,3]"),
    Declaration(OptionalBias, "float[b,n]", "float[n]?"),
)
