"""The Functions that were called by: python -m pytest ...

Each declaration was drafted from these calls. Read it, correct it, and run: autograd-conformance check check_gpytorch.py
A guess is what never varied while it was recorded. Arguments are described in docs/checking-your-function.md.
"""

import sys
from pathlib import Path

from autograd_conformance import Declaration

sys.path.insert(0, str(Path(__file__).parent / '../../work/sv/run'))

from gpytorch.functions._log_normal_cdf import LogNormalCDF
from gpytorch.functions.matern_covariance import MaternCovariance
from gpytorch.functions.rbf_covariance import RBFCovariance
from t_gpytorch.functions.test_matern_covariance import dist_func
from t_gpytorch.functions.test_rbf_covariance import sq_dist_func

# gpytorch.functions._log_normal_cdf:LogNormalCDF: 2 calls, of 2 kinds.
# Guess, of which forward takes others, too: the shape was always [n].
log_normal_cdf = Declaration(
    LogNormalCDF,
    "float[...]",  # z: float32, requires grad at times
)

# gpytorch.functions.matern_covariance:MaternCovariance: 153 calls, of 6 kinds.
# Guess, of which forward takes others, too: n was always 3, m was always 2, k was always 4, l was always 7, p was always 9, q was always 6.
# Forward refuses 16 of 16 simple calls, one of them with: RuntimeError: MaternCovariance cannot compute gradients with respect to x1 and x2
matern_covariance = Declaration(
    MaternCovariance,
    "float[n,m,k,l,p]",  # x1: float32, float64, never requires grad
    "float[n,m,k,q,p]",  # x2: float32, float64, never requires grad
    "float[n,m,k,1,1]",  # lengthscale: float32, float64, requires grad at times
    "0.5 | 1.5 | 2.5",  # nu: 3 values
    dist_func,  # dist_func: never varied
)

# gpytorch.functions.rbf_covariance:RBFCovariance: 51 calls, of 2 kinds.
# Guess, of which forward takes others, too: n was always 3, m was always 2, k was always 4, l was always 7, p was always 9, q was always 6.
# Forward refuses 16 of 16 simple calls, one of them with: RuntimeError: RBFCovariance cannot compute gradients with respect to x1 and x2
rbfcovariance = Declaration(
    RBFCovariance,
    "float[n,m,k,l,p]",  # x1: float32, float64, never requires grad
    "float[n,m,k,q,p]",  # x2: float32, float64, never requires grad
    "float[n,m,k,1,1]",  # lengthscale: float32, float64, requires grad at times
    sq_dist_func,  # sq_dist_func: never varied
)
