"""Functions that call collectives, in two processes: what is wrong cannot be seen in one."""

from __future__ import annotations

import torch
from torch import distributed

from autograd_conformance import in_processes
from autograd_conformance.examples.collectives.normalized import Normalized
from autograd_conformance.selftests.check.specimens import right, wrong
from autograd_conformance.selftests.check.specimens.functions import custom

PARTS = "float[2,n]"


def total(x):
    """The sum over the processes."""
    x = x.clone(memory_format=torch.contiguous_format)
    distributed.all_reduce(x)
    return x


def gathered(x):
    """The parts of all processes, one after the other."""
    parts = [torch.empty_like(x) for _ in range(2)]
    distributed.all_gather(parts, x.contiguous())
    return torch.cat(parts)


def part(x, rank):
    """The part of a process."""
    return x.chunk(2)[rank].clone()


def both(forward, backward):
    """The apply of a Function of one tensor, whose backward needs nothing of forward."""
    return custom(forward=lambda _, x: forward(x), backward=lambda _, g: backward(g)).apply


def without_the_others(ctx, g):
    x, scale = ctx.saved_tensors
    return g * scale - 2 * x * scale**2 * (g * x).sum()


def own(x):
    return part(x, distributed.get_rank())


def other(x):
    return part(x, 1 - distributed.get_rank())


SUM = in_processes(both(total, total))
# The two halves of a layer whose weights are in parts: its input is the same everywhere, and so is its output.
COPY = in_processes(both(torch.clone, total), replicated=(0,))
REDUCE = in_processes(both(total, torch.clone), replicated_outputs=True)
GATHER = in_processes(both(gathered, own), replicated_outputs=True)
SCATTER = in_processes(both(own, gathered), replicated=(0,))


def smoothed(everywhere):
    """A sum of logarithms, to which each process adds its own part alone, or that of all, where x is large."""

    def forward(ctx, x):
        ctx.save_for_backward(x)
        more = total(x.sum()) if everywhere else x.sum()
        return total((x * x).sum()) + torch.where(total((x.abs() > 1.0).sum()) > 0, more, 0 * more)

    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * (2 * x + (total((x.abs() > 1.0).sum()) > 0).to(x.dtype))

    return in_processes(custom(forward=forward, backward=backward).apply, replicated_outputs=True)


def stops(x):
    """A copy, for which the second process leaves out a collective if the tensor is long."""
    if len(x) < 3 or distributed.get_rank() == 0:
        total(x)
    return x.clone()


SPECIMENS = (
    right("a sum over all processes, each with its own loss", "VJP-FD", SUM, PARTS, once=True, examples=0.2),
    wrong(
        "a sum over all processes whose backward does not add the cotangents",
        "VJP-FD",
        in_processes(both(total, torch.clone)),
        PARTS,
        once=True,
        examples=0.2,
        says="times 2",
    ),
    right(
        "a normalization over all processes", "VJP-FD", in_processes(Normalized.apply), PARTS, once=True, examples=0.2
    ),
    wrong(
        "a normalization over all processes whose backward looks at one",
        "VJP-FD",
        in_processes(custom(base=Normalized, backward=without_the_others).apply),
        PARTS,
        once=True,
        examples=0.2,
    ),
    right("an input that is the same everywhere", "VJP-FD", COPY, "float[n]", once=True, examples=0.2),
    wrong(
        "an input that is the same everywhere, whose gradient is that of one process",
        "VJP-FD",
        in_processes(both(torch.clone, torch.clone), replicated=(0,)),
        "float[n]",
        once=True,
        examples=0.2,
    ),
    right("an output that is the same everywhere", "VJP-FD", REDUCE, PARTS, once=True, examples=0.2),
    wrong(
        "an output that is the same everywhere, whose loss counts for each process",
        "VJP-FD",
        in_processes(both(total, total), replicated_outputs=True),
        PARTS,
        once=True,
        examples=0.2,
    ),
    right("parts that are gathered", "VJP-FD", GATHER, PARTS, once=True, examples=0.2),
    wrong(
        "parts that are gathered, of which a process gets the gradient of the other",
        "VJP-FD",
        in_processes(both(gathered, other), replicated_outputs=True),
        PARTS,
        once=True,
        examples=0.2,
    ),
    right("a term that is added up", "VJP-FD FWD-VALUE", smoothed(everywhere=True), PARTS, once=True, examples=0.2),
    wrong(
        "a term that is added up in no process",
        "VJP-FD",
        smoothed(everywhere=False),
        PARTS,
        once=True,
        examples=0.2,
        word="raises",
        says=("must be the same in all processes", "is an all_reduce missing"),
    ),
    wrong(
        "a collective that one process leaves out",
        "VJP-FD",
        in_processes(custom(forward=lambda _, x: stops(x), backward=lambda _, g: g).apply, seconds=1),
        PARTS,
        once=True,
        examples=0.2,
        sizes={"n": (1, 4)},
        word="raises",
        says="a collective that some of the processes do not reach",
    ),
    right("parts of an input that is the same everywhere", "VJP-FD", SCATTER, "float[2*n]", once=True, examples=0.2),
)
