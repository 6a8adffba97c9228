"""linear_operator 0.6.1: a sparse matrix that changes in place before backward makes DSMM's gradient wrong."""

import torch
from linear_operator.functions._dsmm import DSMM

sparse = torch.tensor([[1.0, 0.0], [2.0, 3.0]], dtype=torch.float64).to_sparse()
dense = torch.tensor([[1.0], [1.0]], dtype=torch.float64, requires_grad=True)
y = DSMM.apply(sparse, dense)
before = torch.autograd.grad(y.sum(), dense, retain_graph=True)[0]
sparse.mul_(10)
try:
    after = torch.autograd.grad(y.sum(), dense)[0]
except RuntimeError as error:
    print("refused, as it should be:", error)
    raise SystemExit(0) from None
print(f"gradient {before.tolist()}; after sparse.mul_(10), without an error: {after.tolist()}")
raise SystemExit(not torch.allclose(before, after))
