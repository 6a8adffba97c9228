"""Activations and other maps of single elements."""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812 - as everybody has it
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from autograd_conformance.harness.check import Declaration


class Swish(Function):
    """With a slope that is learned."""

    @staticmethod
    def forward(ctx, x, beta):
        ctx.save_for_backward(x, beta)
        return x * torch.sigmoid(beta * x)

    @staticmethod
    def backward(ctx, g):
        x, beta = ctx.saved_tensors
        s = torch.sigmoid(beta * x)
        d = s * (1 - s)
        return g * (s + beta * x * d), (g * x * x * d).sum_to_size(beta.shape)


class Mish(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * torch.tanh(F.softplus(x))

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        t = torch.tanh(F.softplus(x))
        return g * (t + x * torch.sigmoid(x) * (1 - t * t))


class Prelu(Function):
    """A kink at 0, where both slopes are right."""

    @staticmethod
    def forward(ctx, x, a):
        ctx.save_for_backward(x, a)
        return torch.where(x >= 0, x, a * x)

    @staticmethod
    def backward(ctx, g):
        x, a = ctx.saved_tensors
        return torch.where(x >= 0, g, a * g), (g * x.clamp(max=0)).sum_to_size(a.shape)


class Elu(Function):
    """It saves its output only."""

    @staticmethod
    def forward(ctx, x):
        y = torch.where(x > 0, x, torch.expm1(x.clamp(max=0)))
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return torch.where(y > 0, g, g * (y + 1))


class HardSwish(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * (x + 3).clamp(0, 6) / 6

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        inside = (x > -3) & (x < 3)
        return g * torch.where(inside, (2 * x + 3) / 6, (x >= 3).to(x.dtype))


class SoftThreshold(Function):
    @staticmethod
    def forward(ctx, x, t):
        ctx.save_for_backward(x, t)
        return torch.sign(x) * (x.abs() - t).clamp(min=0)

    @staticmethod
    def backward(ctx, g):
        x, t = ctx.saved_tensors
        kept = g * (x.abs() > t)
        return kept, -(kept * torch.sign(x)).sum_to_size(t.shape)


class Sinc(Function):
    """sin(x) / x, with a series about 0."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        safe = torch.where(x == 0, 1, x)
        return torch.where(x == 0, 1, torch.sin(safe) / safe)

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        small = x.abs() < 0.25
        safe = torch.where(small, 1, x)
        z = x * x
        series = -x / 3 * (1 - z / 10 * (1 - z / 28 * (1 - z / 54 * (1 - z / 88))))
        return g * torch.where(small, series, (torch.cos(safe) - torch.sin(safe) / safe) / safe)


class LogAddExp(Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return torch.maximum(x, y) + torch.log1p(torch.exp(-(x - y).abs()))

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        gx = gy = None
        if ctx.needs_input_grad[0]:
            gx = (g * torch.sigmoid(x - y)).sum_to_size(x.shape)
        if ctx.needs_input_grad[1]:
            gy = (g * torch.sigmoid(y - x)).sum_to_size(y.shape)
        return gx, gy


class Entropy(Function):
    """-x log x, which has no slope at 0."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return -x * torch.log(x)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return -g * (torch.log(x) + 1)


class Clamp(Function):
    """With bounds that are tensors and get gradients."""

    @staticmethod
    def forward(ctx, x, low):
        ctx.save_for_backward(x, low)
        return torch.maximum(x, low)

    @staticmethod
    def backward(ctx, g):
        x, low = ctx.saved_tensors
        up = x >= low
        return g * up, (g * ~up).sum_to_size(low.shape)


class Horner(Function):
    """A polynomial by its coefficients."""

    @staticmethod
    def forward(ctx, x, c):
        ctx.save_for_backward(x, c)
        y = torch.zeros_like(x)
        for k in range(len(c) - 1, -1, -1):
            y = y * x + c[k]
        return y

    @staticmethod
    def backward(ctx, g):
        x, c = ctx.saved_tensors
        powers = torch.stack([x**k for k in range(len(c))]) if len(c) else x.new_zeros(0, *x.shape)
        slope = sum((k * c[k] * powers[k - 1] for k in range(1, len(c))), torch.zeros_like(x))
        return g * slope, powers @ g


class Reciprocal(Function):
    """It saves its output; with its own rule for vmap."""

    @staticmethod
    def forward(x):
        return 1 / x

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(output)

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return -g * (y * y).conj()

    @staticmethod
    def vmap(info, dims, x):
        return Reciprocal.apply(x), dims[0]


class Softplus(Function):
    """Linear above a threshold, where the difference is rounding."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.where(x > 40, x, torch.log1p(torch.exp(x.clamp(max=40))))

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * torch.sigmoid(x)


class Hypotenuse(Function):
    @staticmethod
    def forward(ctx, x, y):
        h = torch.hypot(x, y)
        ctx.save_for_backward(x, y, h)
        return h

    @staticmethod
    def backward(ctx, g):
        x, y, h = ctx.saved_tensors
        return g * x / h, g * y / h


DECLARATIONS = (
    Declaration(Swish, "float[b,n]", "float[n]", name="LearnedSwish"),
    Declaration(Mish, "float[...]", reference=F.mish),
    Declaration(Prelu, "float[b,n]", "float[n] positive", reference=lambda x, a: torch.where(x > 0, x, a * x)),
    Declaration(Elu, "float[...]", reference=F.elu),
    Declaration(HardSwish, "float[...]", reference=F.hardswish),
    Declaration(SoftThreshold, "float[n]", "float[] positive"),
    Declaration(Sinc, "float[n]", once=True),
    Declaration(LogAddExp, "float[~]", "float[~]", reference=torch.logaddexp),
    Declaration(Entropy, "float[...] unit"),
    Declaration(Clamp, "float[b,n]", "float[n]"),
    Declaration(Horner, "float[n]", "float[k]", sizes={"k": (0, 1, 3)}),
    Declaration(Reciprocal, "number[...] nonzero"),
    Declaration(Softplus, "float[...]", reference=F.softplus),
    Declaration(Hypotenuse, "float[n] nonzero", "float[n] nonzero"),
)
