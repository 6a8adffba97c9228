"""The Functions of gpytorch, with what their code suggests of the arguments.

Copy this file, correct the copy, and run check on it: the next check of gpytorch writes this file anew.
"""

from autograd_conformance import Declaration

from gpytorch.functions._log_normal_cdf import LogNormalCDF
from gpytorch.variational.large_batch_variational_strategy import QuadFormDiagonal

# gpytorch.variational.large_batch_variational_strategy:QuadFormDiagonal.
quad_form_diagonal = Declaration(
    QuadFormDiagonal,
    "float[n,n]",
    "float[n,n]",
)
