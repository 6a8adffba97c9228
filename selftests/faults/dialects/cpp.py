"""Faults of torch::autograd::Function: each is planted into the compiled Functions by its name."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from autograd_conformance.implementations.torch.cpp import extension
from autograd_conformance.reference.clauses.dialects.cpp import CLAUSES
from autograd_conformance.selftests.faults.planting import Plant, fault


def planted(name: str) -> Plant:
    """The compiled Functions have the fault of this name."""

    @contextmanager
    def install() -> Iterator[None]:
        probes = extension().probes
        probes.plant(name)
        try:
            yield
        finally:
            probes.plant("")

    return install


FAULTS = (
    *(fault(id, planted(made(id).fault)) for id, made in CLAUSES.items() if made(id).fault),
    fault("CPP-CTX-01: without their graph", planted("saved tensors lose their graph"), "can be differentiated"),
)
