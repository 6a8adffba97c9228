"""Half precision and mixed dtypes."""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812 - as everybody has it
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from autograd_conformance.harness.check import Declaration

_HALF = ("float16", "bfloat16", "float32")


def _wide(x):
    return x.double() if x.dtype == torch.float64 else x.float()


class WideSoftmax(Function):
    """Computes in single precision at least; saves the rounded output."""

    @staticmethod
    def forward(ctx, x):
        y = _wide(x).softmax(-1).to(x.dtype)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        gw, yw = _wide(g), _wide(y)
        return (yw * (gw - (gw * yw).sum(-1, keepdim=True))).to(g.dtype)


class WideRms(Function):
    """The weight stays in the dtype of the input; sums are taken in single precision."""

    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        xw = _wide(x)
        return (xw * torch.rsqrt(xw.square().mean(-1, keepdim=True) + 0.01) * _wide(w)).to(x.dtype)

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        xw, gw, ww = _wide(x), _wide(g), _wide(w)
        r = torch.rsqrt(xw.square().mean(-1, keepdim=True) + 0.01)
        y, h = xw * r, gw * ww
        return (r * (h - y * (h * y).mean(-1, keepdim=True))).to(x.dtype), (gw * y).sum(0).to(w.dtype)


class WideSum(Function):
    """Accumulates in double precision."""

    @staticmethod
    def forward(ctx, x):
        ctx.shape, ctx.dtype = x.shape, x.dtype
        return x.double().sum(-1).to(x.dtype)

    @staticmethod
    def backward(ctx, g):
        return g.unsqueeze(-1).expand(ctx.shape)


class Gelu(Function):
    """The tanh approximation, in the dtype that came."""

    C, A = 0.7978845608028654, 0.044715

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return F.gelu(x, approximate="tanh")

    @staticmethod
    def backward(ctx, g):
        (given,) = ctx.saved_tensors
        x = _wide(given)
        inner = Gelu.C * (x + Gelu.A * x**3)
        t = torch.tanh(inner)
        slope = 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * Gelu.C * (1 + 3 * Gelu.A * x * x)
        return (g * slope).to(given.dtype)


class Swish(Function):
    """Activation with gate, by autocast-aware decorators."""

    @staticmethod
    @torch.amp.custom_fwd(device_type="cpu")
    def forward(ctx, x, gate):
        ctx.save_for_backward(x, gate)
        return F.silu(gate) * x

    @staticmethod
    @torch.amp.custom_bwd(device_type="cpu")
    def backward(ctx, g):
        x, gate = ctx.saved_tensors
        s = torch.sigmoid(gate)
        return g * F.silu(gate), g * x * (s * (1 + gate * (1 - s)))


class AutocastLinear(Function):
    """Casts to single precision under autocast, as losses do."""

    @staticmethod
    @torch.amp.custom_fwd(device_type="cpu", cast_inputs=torch.float32)
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x @ w.mT

    @staticmethod
    @torch.amp.custom_bwd(device_type="cpu")
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        return g @ w, g.mT @ x


class ToSingle(Function):
    """Its output is in single precision, whatever comes in."""

    @staticmethod
    def forward(ctx, x):
        ctx.dtype = x.dtype
        return 2 * x.float()

    @staticmethod
    def backward(ctx, g):
        return (2 * g).to(ctx.dtype)


class LogSumExp(Function):
    @staticmethod
    def forward(ctx, x):
        top = x.amax(-1, keepdim=True)
        y = (x - top).exp().sum(-1).log() + top.squeeze(-1)
        ctx.save_for_backward(x, y)
        return y

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return g.unsqueeze(-1) * torch.exp(x - y.unsqueeze(-1))


class Packed(Function):
    """Saves its mask as bytes, and scales by a power of two."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward((x > 0).to(torch.uint8))
        return x.clamp(min=0) * 0.5

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        (mask,) = ctx.saved_tensors
        return g * mask * 0.5


DECLARATIONS = (
    Declaration(WideSoftmax, "float[b,n]"),
    Declaration(WideRms, "float[b,n]", "float[n]", sizes={"n": (1, 2, 5)}),
    Declaration(WideSum, "float[b,n]", reference=lambda x: x.sum(-1)),
    Declaration(Gelu, "float[...]", reference=lambda x: F.gelu(x, approximate="tanh"), name="gelu_tanh"),
    Declaration(Swish, "float[n,m]", "float[n,m]", also="autocast"),
    Declaration(AutocastLinear, "float[b,n]", "float[m,n]", dtypes=_HALF, also="autocast"),
    Declaration(ToSingle, "float[n]", casts=True, dtypes=_HALF),
    Declaration(LogSumExp, "float[b,n]", sizes={"n": (1, 2, 5)}, reference=lambda x: torch.logsumexp(x, -1)),
    Declaration(Packed, "float[...]", once=True),
)
