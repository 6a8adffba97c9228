"""The Functions of torch_struct, with what their code suggests of the arguments.

Copy this file, correct the copy, and run check on it: the next check of torch_struct writes this file anew.
"""

from autograd_conformance import Declaration

from torch_struct.semirings.sample import _MultiSampledLogSumExp, _SampledLogSumExp
from torch_struct.semirings.sparse_max import _SimplexProject, _SparseMaxGrad

# torch_struct.semirings.sample:_SampledLogSumExp.
_sampled_log_sum_exp = Declaration(
    _SampledLogSumExp,
    "float[n,m]",
    "-1",
    stochastic=True,  # results change with the seed of random numbers
)

# torch_struct.semirings.sample:_MultiSampledLogSumExp.
_multi_sampled_log_sum_exp = Declaration(
    _MultiSampledLogSumExp,
    "float[n,m]",
    "-1",
    stochastic=True,  # results change with the seed of random numbers
)
