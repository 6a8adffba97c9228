"""Random numbers: seeded outside, given, or from a generator of the Function's own."""

from __future__ import annotations

import torch
from torch.autograd import Function

from autograd_conformance.harness.check import Declaration


class Dropout(Function):
    @staticmethod
    def forward(ctx, x, p):
        keep = (torch.rand(x.shape, device=x.device) >= p).to(x.dtype) / (1 - p)
        ctx.save_for_backward(keep)
        return x * keep

    @staticmethod
    def backward(ctx, g):
        (keep,) = ctx.saved_tensors
        return g * keep, None


class SeededDropout(Function):
    """Draws the same mask again in backward, with a seed that is an argument."""

    @staticmethod
    def _mask(x, seed):
        generator = torch.Generator(x.device).manual_seed(seed)
        return (torch.rand(x.shape, generator=generator, device=x.device) < 0.5).to(x.dtype) * 2

    @staticmethod
    def forward(ctx, x, seed):
        ctx.seed = seed
        return x * SeededDropout._mask(x, seed)

    @staticmethod
    def backward(ctx, g):
        return g * SeededDropout._mask(g, ctx.seed), None


class Gumbel(Function):
    """Softmax with given noise."""

    @staticmethod
    def forward(ctx, x, noise, temperature):
        y = ((x - torch.log(-torch.log(noise))) / temperature).softmax(-1)
        ctx.save_for_backward(y)
        ctx.temperature = temperature
        return y

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return y * (g - (g * y).sum(-1, keepdim=True)) / ctx.temperature, None, None


class Reparameterized(Function):
    """A normal sample of a mean and a logarithm of a variance."""

    @staticmethod
    def forward(ctx, mean, log_var):
        noise = torch.randn(mean.shape, device=mean.device).to(mean.dtype)
        ctx.save_for_backward(noise, log_var)
        return mean + torch.exp(0.5 * log_var) * noise

    @staticmethod
    def backward(ctx, g):
        noise, log_var = ctx.saved_tensors
        return g, 0.5 * g * torch.exp(0.5 * log_var) * noise


class Noisy(Function):
    """Adds noise, and passes its gradient on."""

    @staticmethod
    def forward(ctx, x):
        return x + torch.randn(x.shape, device=x.device).to(x.dtype)

    @staticmethod
    def backward(ctx, g):
        return g.clone()


DECLARATIONS = (
    Declaration(Dropout, "float[...]", "0.5 | 0.25", stochastic=True),
    Declaration(SeededDropout, "float[n,m]", "int(0..3)"),
    Declaration(Gumbel, "float[b,c]", "float[b,c](0.1..0.9) constant", "0.5 | 2.0"),
    Declaration(Reparameterized, "float[n]", "float[n]", stochastic=True),
    Declaration(Noisy, "float[...]", stochastic=True),
)
