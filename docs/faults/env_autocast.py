"""The path that is taken under autocast forgets to divide."""

import torch

from autograd_conformance import Declaration


class Scores(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k):
        ctx.save_for_backward(q, k)
        ctx.scale = q.shape[1] ** -0.5
        if torch.is_autocast_enabled("cpu"):
            return q @ k.mT
        return q @ k.mT * ctx.scale

    @staticmethod
    def backward(ctx, g):
        q, k = ctx.saved_tensors
        g = g * ctx.scale
        return (g @ k.to(g.dtype)).to(k.dtype), (g.mT @ q.to(g.dtype)).to(q.dtype)


# Fixed:


class FixedScores(Scores):
    @staticmethod
    def forward(ctx, q, k):
        ctx.save_for_backward(q, k)
        ctx.scale = q.shape[1] ** -0.5
        return q @ k.mT * ctx.scale


faulty = Declaration(Scores, "float[n,d]", "float[m,d]", sizes={"d": (1, 4)}, also=["autocast"])
fixed = Declaration(FixedScores, "float[n,d]", "float[m,d]", sizes={"d": (1, 4)}, also=["autocast"])
