"""Signals."""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812 - as everybody has it
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from autograd_conformance.harness.check import Declaration


class CircularConvolution(Function):
    """By the fast Fourier transform; backward is a correlation."""

    @staticmethod
    def forward(ctx, x, k):
        ctx.save_for_backward(x, k)
        return torch.fft.irfft(torch.fft.rfft(x) * torch.fft.rfft(k), n=x.shape[-1])

    @staticmethod
    def backward(ctx, g):
        x, k = ctx.saved_tensors
        n, transformed = x.shape[-1], torch.fft.rfft(g)
        gx = torch.fft.irfft(transformed * torch.fft.rfft(k).conj(), n=n)
        return gx, torch.fft.irfft(transformed * torch.fft.rfft(x).conj(), n=n).sum_to_size(k.shape)


class Toeplitz(Function):
    """Full convolution of two vectors by a loop."""

    @staticmethod
    def forward(ctx, x, k):
        ctx.save_for_backward(x, k)
        out = x.new_zeros(len(x) + len(k) - 1)
        for i in range(len(k)):
            out[i : i + len(x)] += k[i] * x
        return out

    @staticmethod
    def backward(ctx, g):
        x, k = ctx.saved_tensors
        windows = g.unfold(0, len(x), 1)
        return k @ windows, windows @ x


class Conv(Function):
    """Two dimensions, padded, with the kernels of torch for both gradients."""

    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return F.conv2d(x, w, padding=1)

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        gx = gw = None
        if ctx.needs_input_grad[0]:
            gx = torch.nn.grad.conv2d_input(x.shape, w, g, padding=1)
        if ctx.needs_input_grad[1]:
            gw = torch.nn.grad.conv2d_weight(x, w.shape, g, padding=1)
        return gx, gw


class Cosines(Function):
    """The discrete cosine transform as a matrix, orthogonal."""

    @staticmethod
    def _matrix(like):
        n = like.shape[-1]
        i = torch.arange(n, dtype=torch.float64)
        m = torch.cos(torch.pi * (i[:, None] + 0.5) * i / n) * (2 / n) ** 0.5
        m[:, :1] *= 0.5**0.5
        return m.to(like)

    @staticmethod
    def forward(ctx, x):
        return x @ Cosines._matrix(x)

    @staticmethod
    def backward(ctx, g):
        return g @ Cosines._matrix(g).mT


class Spectrum(Function):
    """The power of each frequency."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        z = torch.fft.fft(x)
        return z.real.square() + z.imag.square()

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        # The adjoint of the transform is the inverse without its factor.
        return 2 * torch.fft.ifft(g * torch.fft.fft(x), norm="forward").real


class Haar(Function):
    """One step of the wavelet: sums and differences."""

    @staticmethod
    def forward(ctx, x):
        a, b = x[..., 0::2], x[..., 1::2]
        return (a + b) / 2, (a - b) / 2

    @staticmethod
    def backward(ctx, s, d):
        return torch.stack((s + d, s - d), -1).flatten(-2) / 2


class Biquad(Function):
    """An all-pole filter with one coefficient; its backward runs through time the other way."""

    @staticmethod
    def _run(x, a):
        y = x.clone()
        for t in range(1, len(x)):
            y[t] = x[t] - a * y[t - 1]
        return y

    @staticmethod
    def forward(ctx, x, a):
        y = Biquad._run(x, a)
        ctx.save_for_backward(y, a)
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        y, a = ctx.saved_tensors
        gx = Biquad._run(g.flip(0), a).flip(0)
        return gx, -(gx[1:] * y[:-1]).sum()


class TotalVariation(Function):
    """A sign at each difference, 0 where there is none."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.diff(dim=-1).abs().sum(-1)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        s = torch.sign(x.diff(dim=-1)) * g.unsqueeze(-1)
        return F.pad(s, (1, 0)) - F.pad(s, (0, 1))


class Upsampled(Function):
    @staticmethod
    def forward(ctx, x):
        return x.repeat_interleave(2, -1)

    @staticmethod
    def backward(ctx, g):
        return g[..., 0::2] + g[..., 1::2]


class Shuffled(Function):
    """Moves channels into space, by reshape and permute."""

    @staticmethod
    def forward(ctx, x):
        return F.pixel_shuffle(x, 2)

    @staticmethod
    def backward(ctx, g):
        return F.pixel_unshuffle(g, 2)


_T = {"t": (1, 2, 3, 6)}

DECLARATIONS = (
    Declaration(CircularConvolution, "float[b,t]", "float[t]", sizes=_T),
    Declaration(Toeplitz, "float[n]", "float[m]", sizes={"n": (1, 2, 4), "m": (1, 3)}),
    Declaration(Conv, "float[b,c,h,w]", "float[o,c,3,3]", sizes=dict.fromkeys("bcoh", (1, 2)) | {"w": (3,)}),
    Declaration(Cosines, "float[b,t]", sizes=_T),
    Declaration(Spectrum, "float[b,t]", sizes=_T),
    Declaration(Haar, "number[b,4]"),
    Declaration(Biquad, "float[t]", "float[]", once=True, sizes=_T),
    Declaration(TotalVariation, "float[b,t]", sizes=_T),
    Declaration(Upsampled, "number[...,t]", sizes=_T),
    Declaration(Shuffled, "float[b,4,h,w]", sizes={"b": (1, 2), "h": (1, 2), "w": (1, 3)}),
)
