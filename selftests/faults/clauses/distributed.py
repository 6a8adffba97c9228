"""Faults of collectives and of gradients that processes share."""

from __future__ import annotations

from contextlib import nullcontext
from unittest.mock import patch

import torch
from torch import distributed
from torch.distributed import ReduceOp
from torch.distributed import _functional_collectives as functional
from torch.distributed.nn import functional as differentiable
from torch.nn import parallel

from autograd_conformance.selftests.faults import plants
from autograd_conformance.selftests.faults.clauses.definitions import Fix
from autograd_conformance.selftests.faults.planting import fault


def _of_one_process(original, x, *args):
    """The values of a collective that keeps the shape, with the gradient that it has in one process."""
    return original(x.detach(), *args) + (x - x.detach())


def _of_a_sum(original, x, op, group):
    """The values of a reduction, with the gradient of a sum."""
    total = original(x, "sum", group)
    return original(x.detach(), op, group) + (total - total.detach())


def _own_part_of_all(original, x, dim, group):
    """A gather whose gradient is that of the part of this process in its own output."""
    parts = list(original(x.detach(), dim, group).chunk(2, dim))
    parts[distributed.get_rank()] = x
    return torch.cat(parts, dim)


def _silent_in_backward(original, *args, **options):
    """A backward pass in which collectives of one's own leave tensors as they are, but not those of torch's modules."""
    reduce = distributed.all_reduce

    def silent(x, **how):
        return reduce(x, **how) if how else None

    with patch.object(distributed, "all_reduce", silent):
        return original(*args, **options)


class _Broadcast(torch.autograd.Function):
    """A broadcast with its gradient."""

    @staticmethod
    def forward(ctx, original, x, src, group):
        ctx.src, ctx.group = src, group
        return original(x.detach(), src, group).clone()

    @staticmethod
    def backward(ctx, g):
        total = functional.all_reduce(g, "sum", ctx.group).clone()
        return None, total if distributed.get_rank() == ctx.src else torch.zeros_like(g), None, None


class _Refused(torch.autograd.Function):
    """The same values, with a backward that raises."""

    @staticmethod
    def forward(_, x, y):
        return y.clone()

    @staticmethod
    def backward(_, __):
        raise RuntimeError("backward supports sums only")


def _only_sums(original, x, op=ReduceOp.SUM, *args):
    """Other reductions are refused in backward."""
    return original(x, op, *args) if op == ReduceOp.SUM else _Refused.apply(x, original(x.detach(), op, *args))


def _alone(original, module, *args):
    """A module that averages no gradients."""
    with module.no_sync():
        return original(module, *args)


FAULTS = (
    fault("DIST-01", plants.wrapped(functional, "all_reduce", _of_one_process), "gradient in each process"),
    fault(
        "DIST-01: of a gather each process gets the gradient of its own output alone",
        plants.wrapped(functional, "all_gather_single_autograd", _own_part_of_all),
        "gradient in each process",
    ),
    fault("DIST-02", plants.wrapped(functional, "all_reduce", _of_a_sum), "does not refuse"),
    fault("DIST-03", plants.wrapped(differentiable, "all_reduce", _of_one_process), "gradient in each process"),
    fault("DIST-04", plants.wrapped(parallel.DistributedDataParallel, "forward", _alone), "w.grad"),
    fault(
        "DIST-04: gradients are averaged within no_sync, too",
        plants.put(parallel.DistributedDataParallel, "no_sync", lambda _: nullcontext()),
        "within no_sync",
    ),
    fault("DIST-05", plants.wrapped(torch.autograd, "grad", _silent_in_backward), "gradient in each process"),
)

FIXES = (
    Fix(
        "DIST-01",
        plants.wrapped(functional, "broadcast", lambda original, *args: _Broadcast.apply(original, *args)),
        variant="broadcast",
    ),
    Fix("DIST-03", plants.wrapped(differentiable, "all_reduce", _only_sums), variant="reductions"),
)
