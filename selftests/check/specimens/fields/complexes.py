"""Complex numbers. Gradients are conjugated, as torch has them."""

from __future__ import annotations

import torch
from torch.autograd import Function

from autograd_conformance.harness.check import Declaration


class Magnitude(Function):
    """0 has the gradient 0."""

    @staticmethod
    def forward(ctx, z):
        ctx.save_for_backward(z)
        return z.abs()

    @staticmethod
    def backward(ctx, g):
        (z,) = ctx.saved_tensors
        return g * torch.sgn(z)


class Angle(Function):
    @staticmethod
    def forward(ctx, z):
        ctx.save_for_backward(z)
        return z.angle()

    @staticmethod
    def backward(ctx, g):
        (z,) = ctx.saved_tensors
        return g * 1j * z / (z.real.square() + z.imag.square())


class Power(Function):
    """The squared magnitude."""

    @staticmethod
    def forward(ctx, z):
        ctx.save_for_backward(z)
        return z.real.square() + z.imag.square()

    @staticmethod
    def backward(ctx, g):
        (z,) = ctx.saved_tensors
        return 2 * g * z


class Product(Function):
    """Broadcasts; a real factor gets the real part of its gradient."""

    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a * b

    @staticmethod
    def backward(ctx, g):
        a, b = ctx.saved_tensors
        return (g * b.conj()).sum_to_size(a.shape), (g * a.conj()).sum_to_size(b.shape)


class Scaled(Function):
    """A complex vector times real numbers."""

    @staticmethod
    def forward(ctx, z, r):
        ctx.save_for_backward(z, r)
        return z * r

    @staticmethod
    def backward(ctx, g):
        z, r = ctx.saved_tensors
        return g * r, (g * z.conj()).real


class Polar(Function):
    @staticmethod
    def forward(ctx, r, t):
        ctx.save_for_backward(r, t)
        return torch.polar(r, t)

    @staticmethod
    def backward(ctx, g):
        r, t = ctx.saved_tensors
        c, s = torch.cos(t), torch.sin(t)
        return g.real * c + g.imag * s, r * (g.imag * c - g.real * s)


class ModRelu(Function):
    """Shifts the magnitude and keeps the phase."""

    @staticmethod
    def forward(ctx, z, bias):
        ctx.save_for_backward(z, bias)
        return torch.sgn(z) * (z.abs() + bias)

    @staticmethod
    def backward(ctx, g):
        z, b = ctx.saved_tensors
        a, u = z.abs(), torch.sgn(z)
        along = (g * u.conj()).real
        # b/a times what is across the phase, and 1 times all of it.
        return g + b / a * (g - along * u), along


class Squared(Function):
    """Holomorphic, so backward multiplies by a conjugated derivative."""

    @staticmethod
    def forward(z):
        return z * z

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, g):
        (z,) = ctx.saved_tensors
        return g * 2 * z.conj()

    @staticmethod
    def vmap(info, dims, z):
        return Squared.apply(z.movedim(dims[0], 0)), 0


class Hermitian(Function):
    """The hermitian part of a matrix, a self-adjoint map."""

    @staticmethod
    def forward(ctx, a):
        return (a + a.mH) / 2

    @staticmethod
    def backward(ctx, g):
        return Hermitian.apply(g)


class Parts(Function):
    """Real and imaginary part, as views of a copy. Either may go unused."""

    @staticmethod
    def forward(ctx, z):
        ctx.set_materialize_grads(False)
        return z.real.clone(), z.imag.clone()

    @staticmethod
    def backward(ctx, a, b):
        if a is None and b is None:
            return None
        if b is None:
            return a + 0j
        return 1j * b if a is None else torch.complex(a, b)


class Mobius(Function):
    @staticmethod
    def forward(ctx, z, a):
        ctx.save_for_backward(z, a)
        return (z - a) / (1 - a.conj() * z)

    @staticmethod
    def backward(ctx, g):
        z, a = ctx.saved_tensors
        d = 1 - a.conj() * z
        w = (z - a) / d
        # w depends on a by -1/d, and on its conjugate by w z / d.
        return g * ((1 - a.abs().square()) / d**2).conj(), -g * (1 / d).conj() + g.conj() * (w * z / d)


DECLARATIONS = (
    Declaration(Magnitude, "complex[n]", reference=torch.abs),
    Declaration(Angle, "complex[n] nonzero"),
    Declaration(Power, "complex[...]"),
    Declaration(Product, "number[~]", "number[~]", name="product"),
    Declaration(Scaled, "complex[n]", "float[n]"),
    Declaration(Polar, "float[n] positive", "float[n]"),
    Declaration(ModRelu, "complex[n] nonzero", "float[n]"),
    Declaration(Squared, "number[...]", reference=torch.square),
    Declaration(Hermitian, "complex[...,n,n]"),
    Declaration(Parts, "complex[n]"),
    Declaration(Mobius, "complex[n] ball", "complex[n] ball", sizes={"n": (1, 2)}),
)
