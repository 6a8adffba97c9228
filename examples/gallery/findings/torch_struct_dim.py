"""torch-struct 0.5: _SimplexProject along another dimension than the last gives wrong numbers, or raises."""

import torch
from torch_struct.semirings.sparse_max import _SimplexProject

torch.manual_seed(0)
square = (torch.randn(3, 3, dtype=torch.float64) / 2).requires_grad_()
got, expected = _SimplexProject.apply(square, 0), _SimplexProject.apply(square.mT, -1)
weights = torch.autograd.grad(got.sum(), square)[0]
print("along the first", got.tolist(), "transposed, along the last", expected.tolist())
print("projections sum to", weights.sum(0).tolist(), "and not to 1")
try:
    _SimplexProject.apply(torch.randn(3, 4), 0)
except RuntimeError as error:
    print("of shape (3, 4) it raises", error)
raise SystemExit(not torch.allclose(got, expected))
