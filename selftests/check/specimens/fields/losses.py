"""Losses."""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812 - as everybody has it
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from autograd_conformance.harness.check import Declaration


class MeanSquared(Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return (x - y).square().mean()

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        d = 2 * g * (x - y) / max(x.numel(), 1)
        return d, -d


class Huber(Function):
    """The difference is clamped: at the kink both formulas agree."""

    @staticmethod
    def forward(ctx, x, y, delta):
        ctx.save_for_backward(x, y)
        ctx.delta = delta
        d = (x - y).abs()
        c = d.clamp(max=delta)
        return c * (d - 0.5 * c)

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        d = g * (x - y).clamp(-ctx.delta, ctx.delta)
        return d, -d, None


class Pinball(Function):
    """The loss of a quantile."""

    @staticmethod
    def forward(ctx, x, y, tau):
        ctx.save_for_backward(x, y)
        ctx.tau = tau
        d = y - x
        return torch.maximum(tau * d, (tau - 1) * d).sum(-1)

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        slope = torch.where(y >= x, ctx.tau, ctx.tau - 1).to(g.dtype) * g.unsqueeze(-1)
        return -slope, slope, None


class Focal(Function):
    """The focal loss of logits, its gradient by the closed form."""

    @staticmethod
    def forward(ctx, x, t):
        ctx.save_for_backward(x, t)
        z = (2 * t - 1) * x
        return torch.sigmoid(-z) ** 2 * F.softplus(-z)

    @staticmethod
    def backward(ctx, g):
        x, t = ctx.saved_tensors
        s = 2 * t - 1
        z = s * x
        p, q = torch.sigmoid(z), torch.sigmoid(-z)
        return -g * s * q * q * (2 * p * F.softplus(-z) + q), None


def _focal(x, t):
    z = (2 * t - 1) * x
    return (1 - torch.sigmoid(z)) ** 2 * -F.logsigmoid(z)


class Smoothed(Function):
    """Cross entropy with smoothed labels. It saves its second output, the probabilities."""

    @staticmethod
    def forward(ctx, x, label, eps):
        log = torch.log_softmax(x, -1)
        p = log.exp()
        ctx.save_for_backward(p, label)
        ctx.eps = eps
        loss = -(1 - eps) * log.gather(-1, label[:, None]).squeeze(-1) - eps * log.mean(-1)
        ctx.mark_non_differentiable(p)
        return loss, p

    @staticmethod
    @once_differentiable
    def backward(ctx, g, _):
        p, label = ctx.saved_tensors
        hot = F.one_hot(label, p.shape[-1]).to(p.dtype)
        return g[:, None] * (p - (1 - ctx.eps) * hot - ctx.eps / p.shape[-1]), None, None


class DivergenceOfLogits(Function):
    """KL of softmaxes, both with gradients."""

    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        a, b = x.log_softmax(-1), y.log_softmax(-1)
        return (a.exp() * (a - b)).sum(-1)

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        a, b = x.log_softmax(-1), y.log_softmax(-1)
        p, q, d = a.exp(), b.exp(), a - b
        g = g.unsqueeze(-1)
        return g * p * (d - (p * d).sum(-1, keepdim=True)), g * (q - p)


class Triplet(Function):
    """Squared distances, a margin, and a kink where the margin is met."""

    @staticmethod
    def forward(ctx, a, p, n, margin):
        ctx.save_for_backward(a, p, n)
        ctx.margin = margin
        return ((a - p).square().sum(-1) - (a - n).square().sum(-1) + margin).clamp(min=0)

    @staticmethod
    def backward(ctx, g):
        a, p, n = ctx.saved_tensors
        active = (a - p).square().sum(-1) - (a - n).square().sum(-1) + ctx.margin > 0
        g = 2 * (g * active).unsqueeze(-1)
        return g * (n - p), g * (p - a), g * (a - n), None


class InfoNce(Function):
    """The pairs on the diagonal are the right ones."""

    @staticmethod
    def forward(ctx, a, b, temperature):
        ctx.save_for_backward(a, b)
        ctx.temperature = temperature
        scores = a @ b.mT / temperature
        return (torch.logsumexp(scores, -1) - scores.diagonal()).sum()

    @staticmethod
    def backward(ctx, g):
        a, b = ctx.saved_tensors
        scores = a @ b.mT / ctx.temperature
        d = (scores.softmax(-1) - torch.eye(len(a), dtype=a.dtype, device=a.device)) * (g / ctx.temperature)
        return d @ b, d.mT @ a, None


class MultiHinge(Function):
    """The hinge of the best wrong class: ties give several subgradients, of which one is taken."""

    @staticmethod
    def forward(ctx, x, label):
        right = x.gather(-1, label[:, None])
        wrong, best = (x.scatter(-1, label[:, None], -torch.inf) - right).max(-1)
        active = wrong > -1
        ctx.save_for_backward(label, best, active)
        ctx.shape = x.shape
        return (wrong + 1).clamp(min=0).sum()

    @staticmethod
    def backward(ctx, g):
        label, best, active = ctx.saved_tensors
        step = g * active.to(g.dtype)
        zero = g.new_zeros(ctx.shape)
        return zero.scatter_add(-1, best[:, None], step[:, None]).scatter_add(-1, label[:, None], -step[:, None]), None


class Dice(Function):
    @staticmethod
    def forward(ctx, p, t):
        ctx.save_for_backward(p, t)
        return 1 - (2 * (p * t).sum(-1) + 1) / (p.sum(-1) + t.sum(-1) + 1)

    @staticmethod
    def backward(ctx, g):
        p, t = ctx.saved_tensors
        over = 2 * (p * t).sum(-1, keepdim=True) + 1
        under = (p + t).sum(-1, keepdim=True) + 1
        g = g.unsqueeze(-1)
        return g * (over / under - 2 * t) / under, g * (over / under - 2 * p) / under


class WeightedBce(Function):
    """Binary cross entropy of logits with three reductions."""

    @staticmethod
    def forward(ctx, x, t, weight, reduction):
        ctx.save_for_backward(x, t, weight)
        ctx.reduction = reduction
        loss = weight * (F.softplus(x) - x * t)
        return loss if reduction == "none" else getattr(loss, reduction)()

    @staticmethod
    def backward(ctx, g):
        x, t, weight = ctx.saved_tensors
        if ctx.reduction == "mean":
            g = g / max(x.numel(), 1)
        gx = gt = gw = None
        if ctx.needs_input_grad[0]:
            gx = g * weight * (torch.sigmoid(x) - t)
        if ctx.needs_input_grad[1]:
            gt = -g * weight * x
        if ctx.needs_input_grad[2]:
            gw = (g * (F.softplus(x) - x * t)).sum_to_size(weight.shape)
        return gx, gt, gw, None


class LogCosh(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        a = x.abs()
        return a + torch.log1p(torch.exp(-2 * a)) - 0.6931471805599453

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * torch.tanh(x)


class GaussianNll(Function):
    """Of a mean and the logarithm of a variance, with a constant target."""

    @staticmethod
    def forward(ctx, mean, log_var, target):
        ctx.save_for_backward(mean, log_var, target)
        return 0.5 * (log_var + (target - mean) ** 2 * torch.exp(-log_var))

    @staticmethod
    def backward(ctx, g):
        mean, log_var, target = ctx.saved_tensors
        d, w = mean - target, torch.exp(-log_var)
        return g * d * w, 0.5 * g * (1 - d * d * w), None


class Wasserstein(Function):
    """The distance of two sorted samples: a sign at each, 0 where they are equal."""

    @staticmethod
    def forward(ctx, x, y):
        (a, i), (b, j) = x.sort(-1), y.sort(-1)
        ctx.save_for_backward(i, j, torch.sign(a - b))
        return (a - b).abs().sum(-1)

    @staticmethod
    def backward(ctx, g):
        i, j, sign = ctx.saved_tensors
        step = g.unsqueeze(-1) * sign
        return torch.zeros_like(step).scatter(-1, i, step), torch.zeros_like(step).scatter(-1, j, -step)


class Discrepancy(Function):
    """The cross term of the maximum mean discrepancy with a Gaussian kernel."""

    @staticmethod
    def forward(ctx, x, y):
        k = torch.exp(-0.5 * (x[:, None] - y[None]).square().sum(-1))
        ctx.save_for_backward(x, y)
        return k.sum()

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        d = x[:, None] - y[None]
        step = -g * torch.exp(-0.5 * d.square().sum(-1))[..., None] * d
        return step.sum(1), -step.sum(0)


class MaskedMean(Function):
    """The mean of what a mask keeps; 0 where it keeps nothing."""

    @staticmethod
    def forward(ctx, x, mask):
        count = mask.sum(-1).clamp(min=1)
        ctx.save_for_backward(mask, count)
        return torch.where(mask, x, 0).sum(-1) / count

    @staticmethod
    def backward(ctx, g):
        mask, count = ctx.saved_tensors
        return mask * (g / count).unsqueeze(-1), None


class Cosine(Function):
    """1 less the cosine. It saves what it needs again, so second derivatives are refused."""

    @staticmethod
    def forward(ctx, x, y):
        nx, ny = x.norm(dim=-1, keepdim=True), y.norm(dim=-1, keepdim=True)
        ux, uy = x / nx, y / ny
        c = (ux * uy).sum(-1, keepdim=True)
        ctx.save_for_backward(ux, uy, nx, ny, c)
        return 1 - c.squeeze(-1)

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        ux, uy, nx, ny, c = ctx.saved_tensors
        g = g.unsqueeze(-1)
        return g * (c * ux - uy) / nx, g * (c * uy - ux) / ny


_SOME = {"b": (1, 2, 3), "c": (2, 3, 5)}

DECLARATIONS = (
    Declaration(MeanSquared, "float[...]", "float[...]", reference=F.mse_loss),
    Declaration(Huber, "float[n,m]", "float[n,m]", "1.0 | 0.5",
                reference=lambda x, y, d: F.huber_loss(x, y, delta=d, reduction="none")),
    Declaration(Pinball, "float[b,n]", "float[b,n]", "float(0..1)"),
    Declaration(Focal, "float[n]", "float[n] unit constant", reference=_focal),
    Declaration(Smoothed, "float[b,c]", "int[b](0..c-1)", "0.1 | 0.0", once=True, sizes=_SOME),
    Declaration(DivergenceOfLogits, "float[b,c]", "float[b,c]", sizes=_SOME),
    Declaration(Triplet, "float[b,c]", "float[b,c]", "float[b,c]", "1.0", sizes=_SOME),
    Declaration(InfoNce, "float[b,c]", "float[b,c]", "0.5", sizes=_SOME),
    Declaration(MultiHinge, "float[b,c]", "int[b](0..c-1)", sizes=_SOME),
    Declaration(Dice, "float[b,n] unit", "float[b,n] unit"),
    Declaration(WeightedBce, "float[b,n]", "float[b,n] unit", "float[n] positive", "'none' | 'mean' | 'sum'"),
    Declaration(LogCosh, "float[...]"),
    Declaration(GaussianNll, "float[n,m]", "float[n,m](-4.0..4.0)", "float[n,m] constant"),
    Declaration(Wasserstein, "float[b,n]", "float[b,n]"),
    Declaration(Discrepancy, "float[n,d]", "float[m,d]"),
    Declaration(MaskedMean, "float[b,n]", "bool[b,n]"),
    Declaration(Cosine, "float[b,n] nonzero", "float[b,n] nonzero", once=True),
)  # fmt: skip
