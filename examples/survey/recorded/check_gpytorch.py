"""The Functions that were called by: python -m pytest ...

Each declaration was drafted from these calls. Read it, correct it, and run: autograd-conformance check check_gpytorch.py
A guess is what never varied while it was recorded. Arguments are described in docs/checking-your-function.md.
"""

from autograd_conformance import Declaration

from gpytorch.functions._log_normal_cdf import LogNormalCDF
from gpytorch.functions.matern_covariance import MaternCovariance
from gpytorch.functions.rbf_covariance import RBFCovariance
from test.functions.test_matern_covariance import dist_func
from test.functions.test_rbf_covariance import sq_dist_func

# gpytorch.functions._log_normal_cdf:LogNormalCDF: 2 calls, of 2 kinds.
# Guess, of which forward takes others, too: the shape was always [n].
log_normal_cdf = Declaration(
    LogNormalCDF,
    "float[...]",  # z: float32, requires grad at times
)

# gpytorch.functions.matern_covariance:MaternCovariance: 153 calls, of 6 kinds.
# Guess, of which forward takes others, too: n was always 3, m was always 2, k was always 4, l was always 7, p was always 9, q was always 6.
matern_covariance = Declaration(
    MaternCovariance,
    "float[n,m,k,l,p] constant",  # x1: float32, float64, never requires grad
    "float[n,m,k,q,p] constant",  # x2: float32, float64, never requires grad
    "float[n,m,k,1,1] positive",  # lengthscale: float32, float64, requires grad at times
    "0.5 | 1.5 | 2.5",  # nu: 3 values
    dist_func,  # dist_func: never varied
)

# gpytorch.functions.rbf_covariance:RBFCovariance: 51 calls, of 2 kinds.
# Guess, of which forward takes others, too: n was always 3, m was always 2, k was always 4, l was always 7, p was always 9, q was always 6.
rbfcovariance = Declaration(
    RBFCovariance,
    "float[n,m,k,l,p] constant",  # x1: float32, float64, never requires grad
    "float[n,m,k,q,p] constant",  # x2: float32, float64, never requires grad
    "float[n,m,k,1,1] positive",  # lengthscale: float32, float64, requires grad at times
    sq_dist_func,  # sq_dist_func: never varied
)
