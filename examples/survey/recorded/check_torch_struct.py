"""The Functions that were called by: python -m pytest ...

Each declaration was drafted from these calls. Read it, correct it, and run: autograd-conformance check check_torch_struct.py
A guess is what never varied while it was recorded. Arguments are described in docs/checking-your-function.md.
"""

from autograd_conformance import Declaration

from torch_struct.semirings.sparse_max import _SimplexProject, _SparseMaxGrad

# torch_struct.semirings.sparse_max:_SimplexProject: 12 calls, of 6 kinds.
_simplex_project = Declaration(
    _SimplexProject,
    "float[...,n]",  # input: float32, requires grad, strided
    "-1",  # dim: never varied
)

# torch_struct.semirings.sparse_max:_SparseMaxGrad: 3 calls, of 3 kinds.
# Guess, of which forward takes others, too: m was always 3.
_sparse_max_grad = Declaration(
    _SparseMaxGrad,
    "float[1,1,n,m,m,m]",  # w_star: float32, requires grad, strided
    "int[](-1..-1)",  # dim: int64
    surrogate=True,  # a guess: the output is the input, and the gradient another one than the output's
)

# torch_struct.semirings.sparse_max:_SparseMaxGrad: called once.
# Guess, of which forward takes others, too: n was always 3.
_sparse_max_grad_2 = Declaration(
    _SparseMaxGrad,
    "float[1,1,n]",  # w_star: float32, requires grad
    "int[](-1..-1)",  # dim: int64
    name="_SparseMaxGrad_2",
    surrogate=True,  # a guess: the output is the input, and the gradient another one than the output's
)

# torch_struct.semirings.sparse_max:_SparseMaxGrad: called once.
# Guess, of which forward takes others, too: n was always 3.
_sparse_max_grad_3 = Declaration(
    _SparseMaxGrad,
    "float[1,1,n,n]",  # w_star: float32, requires grad
    "int[](-1..-1)",  # dim: int64
    name="_SparseMaxGrad_3",
    surrogate=True,  # a guess: the output is the input, and the gradient another one than the output's
)
