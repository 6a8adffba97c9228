"""All planted faults of operators."""

from __future__ import annotations

from autograd_conformance.selftests.faults.operators.formulas import IN_GRADIENT, IN_KERNELS, IN_STATE
from autograd_conformance.selftests.faults.operators.registered import IN_ARGUMENTS, IN_BATCHES, IN_FAKES

PLANTED = (*IN_GRADIENT, *IN_STATE, *IN_KERNELS, *IN_ARGUMENTS, *IN_BATCHES, *IN_FAKES)
