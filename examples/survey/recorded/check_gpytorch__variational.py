"""The Functions that were called by: python -m pytest ...

Each declaration was drafted from these calls. Read it, correct it, and run: autograd-conformance check check_gpytorch__variational.py
A guess is what never varied while it was recorded. Arguments are described in docs/checking-your-function.md.
"""

from autograd_conformance import Declaration, Factory, restored

from gpytorch.variational.ciq_variational_strategy import _NgdInterpTerms
from linear_operator.functions._matmul import Matmul
from linear_operator.operators.dense_linear_operator import DenseLinearOperator
from linear_operator.operators.linear_operator_representation_tree import (
    LinearOperatorRepresentationTree,
)

# gpytorch.variational.ciq_variational_strategy:_NgdInterpTerms: 5 calls, of 2 kinds.
# Guess, of which forward takes others, too: n was always 16, m was always 32.
# Forward refuses 3 of 16 simple calls, one of them with: it returns numbers that are not finite, or above 1e+09, for Call('NgdInterpTerms', args=(Tensor((3, 2), requires_grad=True, fill='dense'), Tensor((3,), requires_grad=True, fill='dense'), Tensor((3, 3), requires_grad=True, fill='dense')), cotangents=(Cotangent(),), seed=5)
_ngd_interp_terms = Declaration(
    _NgdInterpTerms,
    "float[n,m]",  # interp_term: float32, requires grad at times
    "float[n]",  # natural_vec: float32, requires grad
    "float[n,n]",  # natural_mat: float32, requires grad
)

# gpytorch.variational.ciq_variational_strategy:_NgdInterpTerms: 5 calls, of 2 kinds.
# Guess, of which forward takes others, too: n was always 3, m was always 4, k was always 16, l was always 32.
# Forward refuses 3 of 16 simple calls, one of them with: it returns numbers that are not finite, or above 1e+09, for Call('NgdInterpTerms', args=(Tensor((3, 4, 2, 2), requires_grad=True, fill='dense'), Tensor((3, 4, 2), requires_grad=True, fill='dense'), Tensor((3, 4, 2, 2), requires_grad=True, fill='dense')), cotangents=(Cotangent(),), seed=7)
_ngd_interp_terms_2 = Declaration(
    _NgdInterpTerms,
    "float[n,m,k,l]",  # interp_term: float32, requires grad at times
    "float[n,m,k]",  # natural_vec: float32, requires grad
    "float[n,m,k,k]",  # natural_mat: float32, requires grad
    name="_NgdInterpTerms_2",
)

# gpytorch.variational.ciq_variational_strategy:_NgdInterpTerms: 3 calls, of 2 kinds.
# Guess, of which forward takes others, too: m was always 16, k was always 32.
# Forward refuses 3 of 16 simple calls, one of them with: it returns numbers that are not finite, or above 1e+09, for Call('NgdInterpTerms', args=(Tensor((1, 3, 1), requires_grad=True, fill='ramp'), Tensor((1, 3), requires_grad=True, fill='ramp'), Tensor((1, 3, 3), requires_grad=True, fill='ramp')), cotangents=(Cotangent(),), seed=4)
_ngd_interp_terms_3 = Declaration(
    _NgdInterpTerms,
    "float[n,m,k]",  # interp_term: float32, requires grad
    "float[n,m]",  # natural_vec: float32, requires grad
    "float[n,m,m]",  # natural_mat: float32, requires grad
    name="_NgdInterpTerms_3",
)
