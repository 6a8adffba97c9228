"""Clauses on several processes: collectives that are differentiated, and gradients that processes share."""

from __future__ import annotations

from autograd_conformance.reference.clauses.definitions import Clause

CLAUSES = (
    Clause(
        "DIST-01",
        "documented",
        "A functional collective that sums, gathers, scatters or exchanges has the gradient of the loss of all "
        "processes together.",
        "source: torch/distributed/_functional_collectives.py, all_gather_single_autograd",
        quote="This function is the same as all_gather_single but will propagate the backwards gradient across "
        "workers.",
        since="2.13",
        fault="the gradient of a functional all_reduce is that of one process",
    ),
    Clause(
        "DIST-02",
        "documented",
        "A functional collective that reduces otherwise than by a sum has the right gradient, or backward raises.",
        "source: torch/distributed/_functional_collectives.py, reduce_scatter_single_autograd",
        quote='Currently only the "sum" reduceOp is supported.',
        since="2.13",
        fault="a functional all_reduce has the gradient of a sum, whatever it reduces by",
    ),
    Clause(
        "DIST-03",
        "observed",
        "A collective of torch.distributed.nn.functional has the gradient of the loss of all processes together.",
        "source: torch/distributed/nn/functional.py",
        fault="the gradient of an all_reduce is that of one process",
    ),
    Clause(
        "DIST-04",
        "documented",
        "DistributedDataParallel leaves in .grad the mean over the processes of the gradients that a Function of the "
        "module gives; those that do not use a parameter, or whose backward returns None, count as zeros. Within "
        "no_sync each keeps its own.",
        "source: torch/nn/parallel/distributed.py, DistributedDataParallel",
        quote="the gradients between different nodes are averaged",
        fault="DistributedDataParallel leaves each process its own gradients",
    ),
    Clause(
        "DIST-05",
        "observed",
        "A Function that calls collectives in forward and in backward has in several processes the gradients that one "
        "process computes of the whole, within DistributedDataParallel as well.",
        "source: torch/nn/modules/_functions.py, SyncBatchNorm",
        fault="collectives do nothing while backward runs",
    ),
    Clause(
        "DIST-06",
        "observed",
        "A functional broadcast gives the process that sends the sum of all cotangents, and the others zeros, or "
        "backward raises.",
        "source: torch/distributed/nn/functional.py, the warning of broadcast",
        since="2.13",
        fault="the gradient of a functional broadcast is the process's own cotangent",
    ),
)
