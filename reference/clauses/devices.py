"""Clauses about accelerators: streams, devices, copies, and how accurate operations are."""

from __future__ import annotations

from autograd_conformance.reference.clauses.definitions import Clause

CLAUSES = (
    Clause(
        "DEV-01",
        "documented",
        "On an accelerator a node's backward runs on the stream and device of its forward, and a CPU scalar gradient "
        "is moved to its input's device.",
        "backward: Stream semantics of backward passes",
        fault="a scalar gradient that backward returned on the CPU stays there",
    ),
    Clause(
        "DEV-02",
        "documented",
        "A backward call has the stream semantics of any other operation: on the stream that calls it gradients can be "
        "used at once, and so can what that stream has computed before.",
        "backward: Stream semantics of backward passes",
        fault="no_synchronisation of the simulated accelerator",
    ),
    Clause(
        "DEV-03",
        "documented",
        "Unless it is told otherwise, a copy has happened when it returns: one to the host has what was computed, "
        "one from the host has what was there.",
        "Tensor: torch.Tensor.to",
        fault="non_blocking_lies of the simulated accelerator",
    ),
    Clause(
        "DEV-04",
        "observed",
        "A backward pass leaves the current device and stream of its caller as they were.",
        "source: torch/csrc/autograd/engine.cpp",
        fault="guard_left of the simulated accelerator",
    ),
    Clause(
        "DEV-05",
        "observed",
        "A graph may span devices, which includes several of a kind: gradients arrive and accumulate on the device of "
        "their tensor.",
        "source: torch/csrc/autograd/engine.cpp",
        fault="index_mixed of the simulated accelerator",
    ),
    Clause(
        "DEV-06",
        "observed",
        "Built-in operations of a device are as accurate as their dtype.",
        "source: torch/testing/_internal/common_methods_invocations.py",
        fault="coarse_exp of the simulated accelerator",
    ),
    Clause(
        "DEV-07",
        "observed",
        "Memory that is freed while work on it is queued keeps its values until that work is done.",
        "source: c10/core/CachingDeviceAllocator.h",
        fault="stale_memory of the simulated accelerator",
    ),
)
