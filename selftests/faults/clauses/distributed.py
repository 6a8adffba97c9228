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


def _of_one_process(original, x, op=None, *args):
    """The values of a sum that keeps the shape, with the gradient that it has in one process."""
    given = () if op is None else (op, *args)
    return original(x.detach(), *given) + (x - x.detach()) if op in (None, "sum") else original(x, *given)


def _of_a_sum(original, x, op, *where):
    """The values of a reduction, with the gradient of a sum."""
    total = original(x, "sum", *where)
    return original(x.detach(), op, *where) + (total - total.detach())


def _constant_if_uneven(original, x, out, given, group):
    """An exchange without a gradient where the parts are of different sizes."""
    return original(x, out, given, group) if given is None else original(x.detach(), out, given, group) + 0 * x.sum()


class _Misread(torch.autograd.Function):
    """The identity, whose backward takes its cotangent to be contiguous."""

    @staticmethod
    def forward(_, y):
        return y.clone()

    @staticmethod
    def backward(_, g):
        return g.as_strided(g.shape, torch.empty(g.shape).stride()).clone()


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
    def forward(_, y):
        return y.clone()

    @staticmethod
    def backward(_, __):
        raise RuntimeError("backward supports sums only")


class _Copied(torch.autograd.Function):
    """The identity, whose backward gives a contiguous cotangent."""

    @staticmethod
    def forward(_, y):
        return y.clone()

    @staticmethod
    def backward(_, g):
        return g.contiguous()


def _copied(original, *args):
    return tuple(map(_Copied.apply, original(*args)))


def _only_sums(original, x, *args):
    """Other reductions are refused in backward."""
    named = [each for each in args if isinstance(each, ReduceOp.RedOpType)]
    y = original(x, *args)
    return y if named in ([], [ReduceOp.SUM]) else _Refused.apply(y)


def _alone(original, module, *args):
    """A module that averages no gradients."""
    with module.no_sync():
        return original(module, *args)


def _alone_if_unused(original, module, *args):
    """A module that averages no gradients if some parameter may be unused."""
    return _alone(original, module, *args) if module.find_unused_parameters else original(module, *args)


FAULTS = (
    fault("DIST-01", plants.wrapped(functional, "all_reduce", _of_one_process), "gradient of all_reduce in"),
    fault(
        "DIST-01: of a gather each process gets the gradient of its own output alone",
        plants.wrapped(functional, "all_gather_single_autograd", _own_part_of_all),
        "gradient of all_gather_single in",
    ),
    fault(
        "DIST-01: an exchange of uneven parts has no gradient",
        plants.wrapped(functional, "all_to_all_single_autograd", _constant_if_uneven),
        "gradient of all_to_all_single of uneven parts",
    ),
    fault(
        "DIST-01: a cotangent is read as if it were contiguous",
        plants.wrapped(functional, "all_reduce", lambda original, *args: _Misread.apply(original(*args))),
        "gradient of all_reduce in",
        neighbours=("DIST-02",),
    ),
    fault(
        "DIST-02: a functional reduce_scatter has the gradient of a sum, whatever it reduces by",
        plants.wrapped(functional, "reduce_scatter_single_autograd", _of_a_sum),
        "does not refuse",
    ),
    fault("DIST-02", plants.wrapped(functional, "all_reduce", _of_a_sum), "does not refuse"),
    fault(
        "DIST-03: one process rounds another way",
        plants.wrapped(differentiable, "all_reduce", plants.gives(lambda y: y * (1 + distributed.get_rank() * 2**-52))),
        "output of all_reduce in",
    ),
    fault(
        "DIST-03: an exchange of uneven parts has no gradient",
        plants.wrapped(
            differentiable,
            "all_to_all_single",
            plants.where(
                lambda out, x, *sizes: sizes,
                lambda original, out, x, *sizes: original(out, x.detach(), *sizes) + 0 * x.sum(),
            ),
        ),
        "gradient of all_to_all_single of uneven parts",
    ),
    fault("DIST-03", plants.wrapped(differentiable, "all_reduce", _of_one_process), "gradient of all_reduce in"),
    fault(
        "DIST-04", plants.wrapped(parallel.DistributedDataParallel, "forward", _alone), "gradients of the parameters"
    ),
    fault(
        "DIST-04: gradients are averaged within no_sync, too",
        plants.put(parallel.DistributedDataParallel, "no_sync", lambda _: nullcontext()),
        "within no_sync",
    ),
    fault(
        "DIST-04: gradients are not averaged where a parameter may be unused",
        plants.wrapped(parallel.DistributedDataParallel, "forward", _alone_if_unused),
        "gradients of the parameters",
    ),
    fault("DIST-05", plants.wrapped(torch.autograd, "grad", _silent_in_backward), "gradient in each process"),
)

_REDUCING = ("all_reduce", "reduce", "reduce_scatter")

FIXES = (
    Fix(
        "DIST-03",
        lambda: plants.all_of(*(plants.wrapped(differentiable, name, _only_sums) for name in _REDUCING)),
        variant="reductions",
    ),
    Fix(
        "DIST-03",
        lambda: plants.all_of(*(plants.wrapped(differentiable, name, _copied) for name in ("all_gather", "gather"))),
        variant="transposed",
    ),
    Fix("DIST-06", plants.wrapped(functional, "broadcast", lambda original, *args: _Broadcast.apply(original, *args))),
)
