"""The planted faults for a process under test, each as an adapter: ``selftests.separated:fault_3``.

The Function of a fault is named after it, so that the process under test finds it among the documented ones.
"""

from __future__ import annotations

from dataclasses import replace

from autograd_conformance.harness.outcomes import named
from autograd_conformance.harness.running.separation import SEPARABLE
from autograd_conformance.implementations.protocol import Implementation
from autograd_conformance.reference.functions import FUNCTIONS
from autograd_conformance.selftests.planted import PLANTED
from autograd_conformance.selftests.planted.definitions import TORCH

# Those of the tests that can be separated, by name.
FAULTS = {f"fault_{n}": p for n, p in enumerate(PLANTED) if named(p.property_id, p.variant) in SEPARABLE}

# Each faulty Function and its twin.
FAULTY = {name: replace(planted.function, name=name) for name, planted in FAULTS.items()}
TWINS = {name: replace(planted.twin, name=f"twin_of_{name}") for name, planted in FAULTS.items()}


def place_of(name: str, *, twin: bool = False) -> str:
    """The place of the adapter of a fault or of its twin, the same for all that are on torch."""
    planted = FAULTS[name]
    implementation = planted.twin_implementation if twin else planted.implementation
    return f"{__name__}:{'torch' if implementation is TORCH else f'twin_of_{name}' if twin else name}"


def __getattr__(name: str) -> Implementation:
    if name != "torch" and name.removeprefix("twin_of_") not in FAULTS:
        raise AttributeError(name)
    # In the process under test alone.
    FUNCTIONS.update({function.name: function for function in (*FAULTY.values(), *TWINS.values())})
    if name == "torch":
        return TORCH
    planted = FAULTS[name.removeprefix("twin_of_")]
    return planted.twin_implementation if name.startswith("twin_of_") else planted.implementation
