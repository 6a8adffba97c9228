"""The clauses as data: every sentence of the documented contract, and what implementers rely on beside it."""

from __future__ import annotations

from autograd_conformance.reference.clauses import (
    derivatives,
    engine,
    environment,
    functions,
    gradients,
    hooks,
    inplace,
    saving,
    transforms,
)
from autograd_conformance.reference.clauses.definitions import Clause

_PARTS = (functions, gradients, inplace, saving, derivatives, transforms, engine, hooks, environment)

CLAUSES: dict[str, Clause] = {clause.id: clause for part in _PARTS for clause in part.CLAUSES}
