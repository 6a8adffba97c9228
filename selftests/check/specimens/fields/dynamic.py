"""Dynamic programming."""

from __future__ import annotations

import math

import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from autograd_conformance.harness.check import Declaration


def _soft_warp(cost):
    n, m = cost.shape
    r = cost.new_full((n + 1, m + 1), math.inf)
    r[0, 0] = 0
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            before = torch.stack((r[i - 1, j - 1], r[i - 1, j], r[i, j - 1]))
            r[i, j] = cost[i - 1, j - 1] - torch.logsumexp(-before, 0)
    return r


class SoftDtw(Function):
    """The expected alignment is the gradient, by a second recursion."""

    @staticmethod
    def forward(ctx, cost):
        r = _soft_warp(cost)
        ctx.save_for_backward(cost, r)
        return r[-1, -1].clone()

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        cost, r = ctx.saved_tensors
        n, m = cost.shape
        e = torch.zeros_like(r)
        e[n, m] = 1
        for i in range(n, 0, -1):
            for j in range(m, 0, -1):
                for a, b in ((i + 1, j + 1), (i + 1, j), (i, j + 1)):
                    if a <= n and b <= m:
                        e[i, j] += e[a, b] * torch.exp(r[a, b] - cost[a - 1, b - 1] - r[i, j])
        return g * e[1:, 1:]


class ForwardAlgorithm(Function):
    """The partition function of a chain; the gradients are its marginals."""

    @staticmethod
    def forward(ctx, unary, pair):
        alpha = [unary[0]]
        for t in range(1, len(unary)):
            alpha.append(torch.logsumexp(alpha[-1][:, None] + pair, 0) + unary[t])
        z = torch.logsumexp(alpha[-1], 0)
        ctx.save_for_backward(unary, pair, torch.stack(alpha), z)
        return z

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        unary, pair, alpha, z = ctx.saved_tensors
        beta, gu, gp = torch.zeros_like(unary[0]), torch.empty_like(unary), torch.zeros_like(pair)
        for t in range(len(unary) - 1, -1, -1):
            gu[t] = torch.exp(alpha[t] + beta - z)
            if t:
                inner = unary[t] + beta
                gp += torch.exp(alpha[t - 1][:, None] + pair + inner - z)
                beta = torch.logsumexp(pair + inner, 1)
        return g * gu, g * gp


class Viterbi(Function):
    """The best path; its gradient is one where the path goes."""

    @staticmethod
    def forward(ctx, unary, pair):
        best, came = unary[0], []
        for row in unary[1:]:
            best, index = (best[:, None] + pair).max(0)
            best = best + row
            came.append(index)
        value, state = best.max(0)
        path = [int(state)]
        for index in reversed(came):
            path.append(int(index[path[-1]]))
        ctx.path, ctx.shapes = path[::-1], (unary.shape, pair.shape)
        return value

    @staticmethod
    def backward(ctx, g):
        states = torch.tensor(ctx.path, device=g.device)
        gu, gp = (g.new_zeros(shape) for shape in ctx.shapes)
        one = g.expand(len(states))
        gu = gu.index_put((torch.arange(len(states), device=g.device), states), one)
        return gu, gp.index_put((states[:-1], states[1:]), one[1:], accumulate=True)


class EditDistance(Function):
    """The least cost of an alignment with one price for gaps."""

    @staticmethod
    def forward(ctx, cost, gap):
        n, m = cost.shape
        least = {(0, 0): (cost.new_zeros(()), None)}
        for i in range(n + 1):
            for j in range(m + 1):
                ways = []
                if i and j:
                    ways.append((least[i - 1, j - 1][0] + cost[i - 1, j - 1], (i - 1, j - 1)))
                if i:
                    ways.append((least[i - 1, j][0] + gap, (i - 1, j)))
                if j:
                    ways.append((least[i, j - 1][0] + gap, (i, j - 1)))
                if ways:
                    least[i, j] = min(ways, key=lambda w: float(w[0]))
        ctx.pairs, ctx.gaps, place = [], 0, (n, m)
        while place != (0, 0):
            before = least[place][1]
            if place[0] - before[0] and place[1] - before[1]:
                ctx.pairs.append(before)
            else:
                ctx.gaps += 1
            place = before
        ctx.shape = cost.shape
        return least[n, m][0].clone()

    @staticmethod
    def backward(ctx, g):
        mask = torch.zeros(ctx.shape, dtype=g.dtype, device=g.device)
        for i, j in ctx.pairs:
            mask[i, j] = 1
        return g * mask, g * ctx.gaps


class Ctc(Function):
    """The loss of connectionist temporal classification of one sequence without repeats, labels fixed."""

    LABELS = (0, 1, 0, 2, 0)

    @staticmethod
    def _next(row):
        fill = row.new_full((1,), -math.inf)
        one = torch.cat((fill, row[:-1]))
        two = torch.cat((fill, fill, row[:-2]))
        # A label may follow the label before it without a blank between them.
        two = torch.where(torch.tensor([False, False, False, True, False]), two, -math.inf)
        return torch.stack((row, one, two))

    @staticmethod
    def _sweep(log):
        rows = [torch.cat((log[0, :2], log.new_full((3,), -math.inf)))]
        for t in range(1, len(log)):
            rows.append(torch.logsumexp(Ctc._next(rows[-1]), 0) + log[t])
        return torch.stack(rows)

    @staticmethod
    def forward(ctx, x):
        log = x.log_softmax(-1)[:, list(Ctc.LABELS)]
        ahead = Ctc._sweep(log)
        back = Ctc._sweep(log.flip(0, 1)).flip(0, 1)
        z = torch.logsumexp(ahead[-1, -2:], 0)
        ctx.save_for_backward(x, (ahead + back - log - z).exp())
        return -z

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        x, marginal = ctx.saved_tensors
        chosen = torch.zeros_like(x).index_add(1, torch.tensor(Ctc.LABELS), marginal)
        return g * (x.softmax(-1) - chosen)


def _ctc(x):
    long = torch.tensor
    log = x.log_softmax(-1)[:, None]
    return torch.nn.functional.ctc_loss(log, long([[1, 2]]), long([len(x)]), long([2]), reduction="sum")


class ShortestPath(Function):
    """The least cost to the last node of a graph without cycles: costs above the diagonal only."""

    @staticmethod
    def forward(ctx, cost):
        n = len(cost)
        least, came = [cost.new_zeros(())], [0]
        for j in range(1, n):
            ways = torch.stack([least[i] + cost[i, j] for i in range(j)])
            value, i = ways.min(0)
            least.append(value)
            came.append(int(i))
        mask, j = torch.zeros_like(cost), n - 1
        while j:
            mask[came[j], j] = 1
            j = came[j]
        ctx.save_for_backward(mask)
        return least[-1].clone()

    @staticmethod
    def backward(ctx, g):
        return g * ctx.saved_tensors[0]


_N = {"n": (1, 2, 4), "m": (1, 2, 3)}
_TS = {"t": (1, 2, 4), "s": (1, 2, 3)}

DECLARATIONS = (
    Declaration(SoftDtw, "float[n,m]", once=True, sizes=_N),
    Declaration(ForwardAlgorithm, "float[t,s]", "float[s,s]", once=True, sizes=_TS),
    Declaration(Viterbi, "float[t,s]", "float[s,s]", sizes=_TS),
    Declaration(EditDistance, "float[n,m]", "float[] positive", sizes=_N),
    Declaration(Ctc, "float[t,4]", once=True, sizes={"t": (3, 5)}, dtypes=("float64", "float32"), reference=_ctc),
    Declaration(ShortestPath, "float[n,n]", sizes={"n": (1, 2, 4)}),
)
