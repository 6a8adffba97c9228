"""The Functions that were called by: python -m pytest ...

Each declaration was drafted from these calls. Read it, correct it, and run: autograd-conformance check check_gpytorch.py
A guess is what never varied while it was recorded. Arguments are described in docs/checking-your-function.md.
"""

from autograd_conformance import Declaration

from gpytorch.functions._log_normal_cdf import LogNormalCDF

# gpytorch.functions._log_normal_cdf:LogNormalCDF: 2 calls, of 2 kinds.
# Guess, of which forward takes others, too: the shape was always [n].
log_normal_cdf = Declaration(
    LogNormalCDF,
    "float[...]",  # z: float32, requires grad at times
)
