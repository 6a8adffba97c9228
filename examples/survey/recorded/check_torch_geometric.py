"""The Functions that were called by: python -m pytest ...

Each declaration was drafted from these calls. Read it, correct it, and run: autograd-conformance check check_torch_geometric.py
A guess is what never varied while it was recorded. Arguments are described in docs/checking-your-function.md.
"""

from autograd_conformance import Declaration

from torch_geometric.edge_index import _TorchSPMM
from torch_geometric.utils.cross_entropy import SparseCrossEntropy

# torch_geometric.utils.cross_entropy:SparseCrossEntropy: 7 calls, of 5 kinds.
# Guess, of which forward takes others, too: k was always 2.
# Forward refuses 6 of 16 simple calls, one of them with: IndexError: index 1 is out of bounds for dimension 0 with size 1
sparse_cross_entropy = Declaration(
    SparseCrossEntropy,
    "float[n,m]",  # inputs: float32, requires grad
    "int[k,l](0..m-1)",  # edge_label_index: int64
    "float[l]? constant",  # edge_label_weight: float32, never requires grad; backward returns None for it
)

# torch_geometric.edge_index:_TorchSPMM: 4 calls, of 3 kinds.
# Guess, of which forward takes others, too: n was always 2, m was always 4, k was always 3.
# Forward refuses 16 of 16 simple calls, one of them with: AttributeError: 'Tensor' object has no attribute 'is_sorted_by_row'
_torch_spmm = Declaration(
    _TorchSPMM,
    "int[n,m](0..3)",  # input: int64
    "float[k,m]",  # other: float32, never requires grad
    "None",  # value: never varied
    "'sum' | 'min' | 'max'",  # reduce: 3 values
    "False",  # transpose: never varied
)
