"""The Functions of geomloss, with what their code suggests of the arguments.

Copy this file, correct the copy, and run check on it: the next check of geomloss writes this file anew.
"""

from autograd_conformance import Declaration

from geomloss._legacy.kernel_samples import DoubleGrad

# geomloss._legacy.kernel_samples:DoubleGrad.
double_grad = Declaration(
    DoubleGrad,
    "float[...]",
    surrogate=True,  # a guess: the output is the input, and the gradient another one than the output's
)
