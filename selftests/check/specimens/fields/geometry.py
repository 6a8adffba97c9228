"""Geometry."""

from __future__ import annotations

import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from autograd_conformance.harness.check import Declaration


class Hamilton(Function):
    """The product of quaternions: bilinear, so backward is two more products."""

    @staticmethod
    def _product(p, q):
        a, b, c, d = p.unbind(-1)
        e, f, g, h = q.unbind(-1)
        return torch.stack(
            (a * e - b * f - c * g - d * h, a * f + b * e + c * h - d * g,
             a * g - b * h + c * e + d * f, a * h + b * g - c * f + d * e), -1)  # fmt: skip

    @staticmethod
    def _conjugate(p):
        return torch.cat((p[..., :1], -p[..., 1:]), -1)

    @staticmethod
    def forward(ctx, p, q):
        ctx.save_for_backward(p, q)
        return Hamilton._product(p, q)

    @staticmethod
    def backward(ctx, g):
        p, q = ctx.saved_tensors
        return Hamilton._product(g, Hamilton._conjugate(q)), Hamilton._product(Hamilton._conjugate(p), g)


class Cross(Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return torch.linalg.cross(a, b)

    @staticmethod
    def backward(ctx, g):
        a, b = ctx.saved_tensors
        return torch.linalg.cross(b, g), torch.linalg.cross(g, a)


class Rodrigues(Function):
    """Turns a vector by an angle about an axis of any length but 0. Differentiated inside backward."""

    @staticmethod
    def _turn(axis, angle, v):
        k = axis / axis.norm(dim=-1, keepdim=True)
        c, s = angle.cos()[:, None], angle.sin()[:, None]
        return v * c + torch.linalg.cross(k, v) * s + k * (k * v).sum(-1, keepdim=True) * (1 - c)

    @staticmethod
    def forward(ctx, axis, angle, v):
        ctx.save_for_backward(axis, angle, v)
        return Rodrigues._turn(axis, angle, v)

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        given = [x.detach().requires_grad_() for x in ctx.saved_tensors]
        with torch.enable_grad():
            return torch.autograd.grad(Rodrigues._turn(*given), given, g)


class Harmonics(Function):
    """The real spherical harmonics of degree 2, as polynomials."""

    @staticmethod
    def forward(ctx, v):
        ctx.save_for_backward(v)
        x, y, z = v.unbind(-1)
        return torch.stack((x * y, y * z, 3 * z * z - (x * x + y * y + z * z), x * z, x * x - y * y), -1)

    @staticmethod
    def backward(ctx, g):
        (v,) = ctx.saved_tensors
        x, y, z = v.unbind(-1)
        a, b, c, d, e = g.unbind(-1)
        return torch.stack(
            (a * y - 2 * c * x + d * z + 2 * e * x, a * x + b * z - 2 * c * y - 2 * e * y,
             b * y + 4 * c * z + d * x), -1)  # fmt: skip


class Distance(Function):
    """Euclidean, with the gradient 0 where two points meet."""

    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return (a - b).norm(dim=-1)

    @staticmethod
    def backward(ctx, g):
        a, b = ctx.saved_tensors
        d = a - b
        n = d.square().sum(-1, keepdim=True)
        safe = torch.where(n == 0, 1, n).sqrt()
        u = torch.where(n == 0, 0, d / safe) * g.unsqueeze(-1)
        return u, -u


class PairwiseSquared(Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return (x[:, None] - y).square().sum(-1)

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return (2 * g[..., None] * (x[:, None] - y)).sum(1), (2 * g[..., None] * (y - x[:, None])).sum(0)


class Area(Function):
    """The area of a polygon, by the shoelace formula, for a star about 0: its sign is kept."""

    @staticmethod
    def forward(ctx, p):
        q = p.roll(-1, 0)
        ctx.save_for_backward(p)
        return 0.5 * (p[:, 0] * q[:, 1] - p[:, 1] * q[:, 0]).sum()

    @staticmethod
    def backward(ctx, g):
        (p,) = ctx.saved_tensors
        d = p.roll(-1, 0) - p.roll(1, 0)
        return 0.5 * g * torch.stack((d[:, 1], -d[:, 0]), -1)


class Bilinear(Function):
    """Samples an image of 3 by 3 at points within it: the weights have slopes, the cells jump."""

    @staticmethod
    def _cell(image, p):
        i = p.floor().long().clamp(0, 1)
        return i[:, 0], i[:, 1], *(p - i).unbind(-1)

    @staticmethod
    def forward(ctx, image, p):
        ctx.save_for_backward(image, p)
        i, j, s, t = Bilinear._cell(image, p)
        left = (1 - s) * image[i, j] + s * image[i + 1, j]
        return (1 - t) * left + t * ((1 - s) * image[i, j + 1] + s * image[i + 1, j + 1])

    @staticmethod
    def backward(ctx, g):
        image, p = ctx.saved_tensors
        i, j, s, t = Bilinear._cell(image, p)
        a, b, c, d = image[i, j], image[i + 1, j], image[i, j + 1], image[i + 1, j + 1]
        gp = torch.stack(((1 - t) * (b - a) + t * (d - c), (1 - s) * (c - a) + s * (d - b)), -1) * g[:, None]
        weights = ((1 - s) * (1 - t), s * (1 - t), (1 - s) * t, s * t)
        out = torch.zeros_like(image)
        for w, x, y in zip(weights, (i, i + 1, i, i + 1), (j, j, j + 1, j + 1), strict=True):
            out = out.index_put((x, y), g * w, accumulate=True)
        return out, gp


class Perspective(Function):
    @staticmethod
    def forward(ctx, p):
        y = p[..., :2] / p[..., 2:]
        ctx.save_for_backward(p, y)
        return y

    @staticmethod
    def backward(ctx, g):
        p, y = ctx.saved_tensors
        z = p[..., 2:]
        return torch.cat((g / z, -(g * y).sum(-1, keepdim=True) / z), -1)


class Hyperbolic(Function):
    """The squared conformal factor of the ball."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return 4 / (1 - x.square().sum(-1)) ** 2

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return x * (16 * g / (1 - x.square().sum(-1)) ** 3).unsqueeze(-1)


DECLARATIONS = (
    Declaration(Hamilton, "float[...,4]", "float[...,4]"),
    Declaration(Cross, "float[n,3]", "float[n,3]", reference=torch.linalg.cross),
    Declaration(Rodrigues, "float[n,3] nonzero", "float[n]", "float[n,3]", once=True),
    Declaration(Harmonics, "float[n,3]"),
    Declaration(Distance, "float[b,n]", "float[b,n]"),
    Declaration(PairwiseSquared, "float[n,d]", "float[m,d]"),
    Declaration(Area, "float[n,2]", sizes={"n": (3, 4, 5)}),
    Declaration(Bilinear, "float[3,3]", "float[n,2](0.0..2.0)"),
    Declaration(Perspective, "float[n,3] nonzero"),
    Declaration(Hyperbolic, "float[b,n](-0.25..0.25)", sizes={"b": (1, 2), "n": (1, 2, 3)}),
)
