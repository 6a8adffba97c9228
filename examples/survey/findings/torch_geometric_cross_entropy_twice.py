"""torch_geometric 2.8.1: a label that is given twice counts twice in SparseCrossEntropy, but once in its gradient."""

import torch
from torch_geometric.utils.cross_entropy import sparse_cross_entropy

scores = torch.tensor([[0.2, -0.3, 0.5]], dtype=torch.float64, requires_grad=True)
bad = 0
for labels in ([1, 2], [1, 1]):
    index = torch.tensor([[0, 0], labels])
    value = sparse_cross_entropy(scores, index)
    plain = -scores.log_softmax(-1)[index[0], index[1]].sum()
    got, expected = (torch.autograd.grad(each, scores)[0] for each in (value, plain))
    print(f"labels {labels}: value {value.item()}, in plain torch {plain.item()}")
    print(f"    gradient {got[0].tolist()}, in plain torch {expected[0].tolist()}")
    bad += not torch.allclose(got, expected)
raise SystemExit(bad > 0)
