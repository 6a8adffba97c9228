"""The Functions of e3nn, with what their code suggests of the arguments.

Copy this file, correct the copy, and run check on it: the next check of e3nn writes this file anew.
"""

from autograd_conformance import Declaration

from e3nn.math._soft_unit_step import _SoftUnitStep

# e3nn.math._soft_unit_step:_SoftUnitStep.
_soft_unit_step = Declaration(
    _SoftUnitStep,
    "float[...]",
)
