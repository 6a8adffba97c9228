"""The Functions of diffsort, with what their code suggests of the arguments.

Copy this file, correct the copy, and run check on it: the next check of diffsort writes this file anew.
"""

from autograd_conformance import Declaration

from diffsort.functional import NormalCDF

# diffsort.functional:NormalCDF.
normal_cdf = Declaration(
    NormalCDF,
    "float[...]",
    "1 | 2",
)
