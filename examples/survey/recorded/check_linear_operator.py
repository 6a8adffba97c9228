"""The Functions that were called by: python -m pytest ...

Each declaration was drafted from these calls. Read it, correct it, and run: autograd-conformance check check_linear_operator.py
A guess is what never varied while it was recorded. Arguments are described in docs/checking-your-function.md.
"""

import torch

from autograd_conformance import Declaration, Factory, restored

from linear_operator.functions._diagonalization import Diagonalization
from linear_operator.functions._dsmm import DSMM
from linear_operator.functions._inv_quad import InvQuad
from linear_operator.functions._inv_quad_logdet import InvQuadLogdet
from linear_operator.functions._matmul import Matmul
from linear_operator.functions._pivoted_cholesky import PivotedCholesky
from linear_operator.functions._root_decomposition import RootDecomposition
from linear_operator.functions._solve import Solve
from linear_operator.operators.dense_linear_operator import DenseLinearOperator
from linear_operator.operators.identity_linear_operator import IdentityLinearOperator
from linear_operator.operators.linear_operator_representation_tree import (
    LinearOperatorRepresentationTree,
)

# linear_operator.functions._diagonalization:Diagonalization: 3 calls, of 3 kinds.
# Forward was not called to see which lengths and values it takes: forward refuses simple calls, one of them with ValueError: DenseLinearOperator expects a matrix (or batches of matrices) - got a Tensor of size torch.Size([])..
diagonalization = Declaration(
    Diagonalization,
    Factory(lambda seed: restored(LinearOperatorRepresentationTree, _cls=DenseLinearOperator, _differentiable_kwarg_names=(), _nondifferentiable_kwargs={}, children=[(0, None)])),  # representation_tree: as in the first call
    torch.device(type='cpu'),  # device: never varied
    torch.float32,  # dtype: never varied
    torch.Size([4, 4]),  # matrix_shape: never varied
    "100",  # max_iter: never varied
    torch.Size([]),  # batch_shape: the first of 3
    "float[...]",  # matrix_args: float32, requires grad
)

# linear_operator.functions._dsmm:DSMM: 3 calls, of 3 kinds.
# Guess, of which forward takes others, too: m was always 3.
# Lengths that are numbers never varied, and forward refuses others.
# Forward refuses 6 of 16 simple calls, one of them with: RuntimeError: Attempting to broadcast a dimension of length 3 at -1! Mismatching argument at index 1 had torch.Size([3]); but expected shape should be broadcastable to [2]
dsmm = Declaration(
    DSMM,
    "float[2,2,m] sparse constant",  # sparse: float32, never requires grad, sparse_coo; backward returns None for it
    "float[k,m,l]",  # dense: float32, requires grad at times
)

# linear_operator.functions._dsmm:DSMM: 2 calls, of 2 kinds.
# Guess, of which forward takes others, too: n was always 2, m was always 3.
dsmm_2 = Declaration(
    DSMM,
    "float[n,m] sparse constant",  # sparse: float32, never requires grad, sparse_coo; backward returns None for it
    "float[m,k]",  # dense: float32, requires grad at times
    name="DSMM_2",
)

# linear_operator.functions._dsmm:DSMM: 2 calls, of 2 kinds.
# Guess, of which forward takes others, too: n was always 2, m was always 3.
dsmm_3 = Declaration(
    DSMM,
    "float[n,n,n,m] sparse constant",  # sparse: float32, never requires grad, sparse_coo; backward returns None for it
    "float[n,n,m,k]",  # dense: float32, requires grad at times
    name="DSMM_3",
)

# linear_operator.functions._inv_quad:InvQuad: 2 calls, of 2 kinds.
inv_quad = Declaration(
    InvQuad,
    Factory(lambda seed: restored(LinearOperatorRepresentationTree, _cls=DenseLinearOperator, _differentiable_kwarg_names=(), _nondifferentiable_kwargs={}, children=[(0, None)])),  # representation_tree: as in the first call
    "float[n,m]",  # args: float32, requires grad
    "float[n,n] spd",  # argument2: float32, requires grad, spd
)

# linear_operator.functions._inv_quad:InvQuad: 2 calls, of 2 kinds.
inv_quad_2 = Declaration(
    InvQuad,
    Factory(lambda seed: restored(LinearOperatorRepresentationTree, _cls=DenseLinearOperator, _differentiable_kwarg_names=(), _nondifferentiable_kwargs={}, children=[(0, None)])),  # representation_tree: as in the first call
    "float[n]",  # args: float32, requires grad
    "float[n,n] spd",  # argument2: float32, requires grad, spd
    name="InvQuad_2",
)

# linear_operator.functions._inv_quad:InvQuad: 2 calls, of 2 kinds.
inv_quad_3 = Declaration(
    InvQuad,
    Factory(lambda seed: restored(LinearOperatorRepresentationTree, _cls=DenseLinearOperator, _differentiable_kwarg_names=(), _nondifferentiable_kwargs={}, children=[(0, None)])),  # representation_tree: as in the first call
    "float[n,m,k]",  # args: float32, requires grad
    "float[n,m,m] spd",  # argument2: float32, requires grad, spd
    name="InvQuad_3",
)

# linear_operator.functions._inv_quad_logdet:InvQuadLogdet: 2 calls, of 2 kinds.
# Forward was not called to see which lengths and values it takes: forward refuses simple calls, one of them with RuntimeError: Sizes of tensors must match except in dimension 1. Expected size 50 but got size 1 for tensor number 1 in the list..
inv_quad_logdet = Declaration(
    InvQuadLogdet,
    Factory(lambda seed: restored(LinearOperatorRepresentationTree, _cls=DenseLinearOperator, _differentiable_kwarg_names=(), _nondifferentiable_kwargs={}, children=[(0, None)])),  # representation_tree: as in the first call
    Factory(lambda seed: restored(LinearOperatorRepresentationTree, _cls=IdentityLinearOperator, _differentiable_kwarg_names=(), _nondifferentiable_kwargs={'batch_shape': torch.Size([]), 'device': torch.device(type='cpu'), 'diag_shape': 50, 'dtype': torch.float32}, children=[])),  # precond_representation_tree: as in the first call
    "None",  # preconditioner: never varied
    "0",  # num_precond_args: never varied
    "True",  # inv_quad: never varied
    "None",  # probe_vectors: never varied
    "None",  # probe_vector_norms: never varied
    "float[50,5]",  # args: float32, requires grad
    "float[50,50] spd",  # argument8: float32, requires grad, spd
)

# linear_operator.functions._inv_quad_logdet:InvQuadLogdet: 2 calls, of 2 kinds.
# Left out: representation_tree is a linear_operator.operators.linear_operator_representation_tree.LinearOperatorRepresentationTree; write Factory(lambda seed: ...) for it.
# inv_quad_logdet_2 = Declaration(
#     InvQuadLogdet,
#     ...,  # representation_tree: never varied
#     ...,  # precond_representation_tree: never varied
#     ...,  # preconditioner: never varied
#     "2",  # num_precond_args: never varied
#     "True",  # inv_quad: never varied
#     "None",  # probe_vectors: never varied
#     "None",  # probe_vector_norms: never varied
#     "float[n,m]",  # args: float32, requires grad
#     "float[n,n] spd",  # argument8: float32, requires grad, spd
#     "float[1]",  # argument9: float32, never requires grad
#     "float[n,k]",  # argument10: float32, requires grad
#     "float[1]",  # argument11: float32, never requires grad
#     name="InvQuadLogdet_2",
# )

# linear_operator.functions._inv_quad_logdet:InvQuadLogdet: 2 calls, of 2 kinds.
# Forward was not called to see which lengths and values it takes: forward refuses simple calls, one of them with RuntimeError: Sizes of tensors must match except in dimension 2. Expected size 3 but got size 1 for tensor number 1 in the list..
inv_quad_logdet_3 = Declaration(
    InvQuadLogdet,
    Factory(lambda seed: restored(LinearOperatorRepresentationTree, _cls=DenseLinearOperator, _differentiable_kwarg_names=(), _nondifferentiable_kwargs={}, children=[(0, None)])),  # representation_tree: as in the first call
    Factory(lambda seed: restored(LinearOperatorRepresentationTree, _cls=IdentityLinearOperator, _differentiable_kwarg_names=(), _nondifferentiable_kwargs={'batch_shape': torch.Size([3]), 'device': torch.device(type='cpu'), 'diag_shape': 50, 'dtype': torch.float32}, children=[])),  # precond_representation_tree: as in the first call
    "None",  # preconditioner: never varied
    "0",  # num_precond_args: never varied
    "True",  # inv_quad: never varied
    "None",  # probe_vectors: never varied
    "None",  # probe_vector_norms: never varied
    "float[3,50,5]",  # args: float32, requires grad
    "float[3,50,50] spd",  # argument8: float32, requires grad, spd
    name="InvQuadLogdet_3",
)

# linear_operator.functions._pivoted_cholesky:PivotedCholesky: 13 calls, of 13 kinds.
# Forward refuses 13 of 16 simple calls, one of them with: ValueError: DenseLinearOperator expects a matrix (or batches of matrices) - got a Tensor of size torch.Size([1]).
pivoted_cholesky = Declaration(
    PivotedCholesky,
    Factory(lambda seed: restored(LinearOperatorRepresentationTree, _cls=DenseLinearOperator, _differentiable_kwarg_names=(), _nondifferentiable_kwargs={}, children=[(0, None)])),  # representation_tree: as in the first call
    "30 | 3",  # max_iter: 2 values
    "None",  # error_tol: never varied
    "float[...,n]",  # matrix_args: float32, requires grad at times
)

# linear_operator.functions._matmul:Matmul: 5 calls, of 5 kinds.
matmul = Declaration(
    Matmul,
    Factory(lambda seed: restored(LinearOperatorRepresentationTree, _cls=DenseLinearOperator, _differentiable_kwarg_names=(), _nondifferentiable_kwargs={}, children=[(0, None)])),  # representation_tree: as in the first call
    "float[n,m]",  # rhs: float32, requires grad at times
    "float[k,n]",  # matrix_args: float32, requires grad
)

# linear_operator.functions._matmul:Matmul: 4 calls, of 4 kinds.
matmul_2 = Declaration(
    Matmul,
    Factory(lambda seed: restored(LinearOperatorRepresentationTree, _cls=DenseLinearOperator, _differentiable_kwarg_names=(), _nondifferentiable_kwargs={}, children=[(0, None)])),  # representation_tree: as in the first call
    "float[n,m,k]",  # rhs: float32, requires grad at times
    "float[n,l,m]",  # matrix_args: float32, requires grad
    name="Matmul_2",
)

# linear_operator.functions._matmul:Matmul: 4 calls, of 4 kinds.
matmul_3 = Declaration(
    Matmul,
    Factory(lambda seed: restored(LinearOperatorRepresentationTree, _cls=DenseLinearOperator, _differentiable_kwarg_names=(), _nondifferentiable_kwargs={}, children=[(0, None)])),  # representation_tree: as in the first call
    "float[n,m,k,l]",  # rhs: float32, requires grad at times
    "float[n,m,p,k]",  # matrix_args: float32, requires grad
    name="Matmul_3",
)

# linear_operator.functions._root_decomposition:RootDecomposition: called once.
# Guess, of which forward takes others, too: m was always 5.
# Lengths that are numbers never varied, and forward refuses others.
root_decomposition = Declaration(
    RootDecomposition,
    Factory(lambda seed: restored(LinearOperatorRepresentationTree, _cls=DenseLinearOperator, _differentiable_kwarg_names=(), _nondifferentiable_kwargs={}, children=[(0, None)])),  # representation_tree: as in the first call
    "100",  # max_iter: never varied
    torch.float32,  # dtype: never varied
    torch.device(type='cpu'),  # device: never varied
    torch.Size([]),  # batch_shape: never varied
    torch.Size([4, 4]),  # matrix_shape: never varied
    "True",  # root: never varied
    "True",  # inverse: never varied
    "float[4,m] constant",  # initial_vectors: float32, never requires grad; backward returns None for it
    "float[4,4] spd",  # matrix_args: float32, requires grad, spd
)

# linear_operator.functions._root_decomposition:RootDecomposition: called once.
# Guess, of which forward takes others, too: k was always 5.
# Lengths that are numbers never varied, and forward refuses others.
root_decomposition_2 = Declaration(
    RootDecomposition,
    Factory(lambda seed: restored(LinearOperatorRepresentationTree, _cls=DenseLinearOperator, _differentiable_kwarg_names=(), _nondifferentiable_kwargs={}, children=[(0, None)])),  # representation_tree: as in the first call
    "100",  # max_iter: never varied
    torch.float32,  # dtype: never varied
    torch.device(type='cpu'),  # device: never varied
    torch.Size([3]),  # batch_shape: never varied
    torch.Size([4, 4]),  # matrix_shape: never varied
    "True",  # root: never varied
    "True",  # inverse: never varied
    "float[3,4,k] constant",  # initial_vectors: float32, never requires grad; backward returns None for it
    "float[3,4,4] spd",  # matrix_args: float32, requires grad, spd
    name="RootDecomposition_2",
)

# linear_operator.functions._root_decomposition:RootDecomposition: called once.
# Guess, of which forward takes others, too: l was always 5.
# Lengths that are numbers never varied, and forward refuses others.
root_decomposition_3 = Declaration(
    RootDecomposition,
    Factory(lambda seed: restored(LinearOperatorRepresentationTree, _cls=DenseLinearOperator, _differentiable_kwarg_names=(), _nondifferentiable_kwargs={}, children=[(0, None)])),  # representation_tree: as in the first call
    "100",  # max_iter: never varied
    torch.float32,  # dtype: never varied
    torch.device(type='cpu'),  # device: never varied
    torch.Size([2, 3]),  # batch_shape: never varied
    torch.Size([4, 4]),  # matrix_shape: never varied
    "True",  # root: never varied
    "True",  # inverse: never varied
    "float[2,3,4,l] constant",  # initial_vectors: float32, never requires grad; backward returns None for it
    "float[2,3,4,4] spd",  # matrix_args: float32, requires grad, spd
    name="RootDecomposition_3",
)

# linear_operator.functions._solve:Solve: 3 calls, of 3 kinds.
# Guess, of which forward takes others, too: n was always 8.
solve = Declaration(
    Solve,
    Factory(lambda seed: restored(LinearOperatorRepresentationTree, _cls=DenseLinearOperator, _differentiable_kwarg_names=(), _nondifferentiable_kwargs={}, children=[(0, None)])),  # representation_tree: as in the first call
    "False",  # has_left: never varied
    "float[n,m]",  # args: float32, requires grad at times
    "float[n,n] spd",  # argument3: float32, requires grad, spd
)

# linear_operator.functions._solve:Solve: 2 calls, of 2 kinds.
# Guess, of which forward takes others, too: n was always 2, m was always 8, k was always 4.
solve_2 = Declaration(
    Solve,
    Factory(lambda seed: restored(LinearOperatorRepresentationTree, _cls=DenseLinearOperator, _differentiable_kwarg_names=(), _nondifferentiable_kwargs={}, children=[(0, None)])),  # representation_tree: as in the first call
    "False",  # has_left: never varied
    "float[n,m,k]",  # args: float32, requires grad at times
    "float[n,m,m] spd",  # argument3: float32, requires grad, spd
    name="Solve_2",
)

# linear_operator.functions._solve:Solve: called once.
# Guess, of which forward takes others, too: n was always 8.
solve_3 = Declaration(
    Solve,
    Factory(lambda seed: restored(LinearOperatorRepresentationTree, _cls=DenseLinearOperator, _differentiable_kwarg_names=(), _nondifferentiable_kwargs={}, children=[(0, None)])),  # representation_tree: as in the first call
    "False",  # has_left: never varied
    "float[n]",  # args: float32, requires grad
    "float[n,n] spd",  # argument3: float32, requires grad, spd
    name="Solve_3",
)
