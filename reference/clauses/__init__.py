"""The clauses as data: the sentences of PyTorch's documented contract, and what else implementers rely on.

CONTRACT holds the clauses of PyTorch; DIALECTS those of every other implementation about its own interface, by the
name of its folder in suites/dialects; CLAUSES holds all of them.
"""

from __future__ import annotations

import pkgutil
from importlib import import_module

from autograd_conformance.reference.clauses import (
    batching,
    compilers,
    control_flow,
    derivatives,
    devices,
    dialects,
    distributed,
    engine,
    environment,
    functions,
    gradients,
    hooks,
    inplace,
    operators,
    programs,
    saving,
    transforms,
)
from autograd_conformance.reference.clauses.definitions import Clause

_PARTS = (
    functions,
    gradients,
    inplace,
    saving,
    derivatives,
    transforms,
    batching,
    engine,
    hooks,
    environment,
    compilers,
    programs,
    control_flow,
    operators,
    distributed,
    devices,
)

CONTRACT: dict[str, Clause] = {clause.id: clause for part in _PARTS for clause in part.CLAUSES}

DIALECTS: dict[str, dict[str, Clause]] = {
    found.name: {id: clause(id) for id, clause in import_module(f"{dialects.__name__}.{found.name}").CLAUSES.items()}
    for found in pkgutil.iter_modules(dialects.__path__)
}

CLAUSES: dict[str, Clause] = {**CONTRACT, **{id: clause for part in DIALECTS.values() for id, clause in part.items()}}
