"""The Functions that were called by: python -m pytest ...

Each declaration was drafted from these calls. Read it, correct it, and run: autograd-conformance check check_torch_geometric.py
A guess is what never varied while it was recorded. Arguments are described in docs/checking-your-function.md.
"""

from autograd_conformance import Declaration

from torch_geometric.utils.cross_entropy import SparseCrossEntropy

# torch_geometric.utils.cross_entropy:SparseCrossEntropy: 7 calls, of 5 kinds.
# Lengths that are numbers never varied, and forward refuses others.
# Forward refuses 3 of 16 simple calls, one of them with: IndexError: index 2 is out of bounds for dimension 0 with size 1
sparse_cross_entropy = Declaration(
    SparseCrossEntropy,
    "float[n,m]",  # inputs: float32, requires grad
    "int[2,l](0..m-1)",  # edge_label_index: int64
    "float[l]? constant",  # edge_label_weight: float32, never requires grad; backward returns None for it
)

# torch_geometric.edge_index:_TorchSPMM: 258 calls, of 66 kinds.
# Left out: input is a torch_geometric.edge_index.EdgeIndex, and forward refuses other tensors: AttributeError: 'Tensor' object has no attribute 'is_sorted_by_row'.
# _torch_spmm = Declaration(
#     _TorchSPMM,
#     "int[n,m](0..3)",  # input: int64, of the class torch_geometric.edge_index.EdgeIndex
#     "float[k,l]",  # other: float32, requires grad at times
#     "float[m]?",  # value: float32, requires grad at times
#     "'sum' | 'amin' | 'amax' | 'min' | 'max' | 'mean' | 'add'",  # reduce: 7 values
#     "False | True",  # transpose: 2 values
# )
