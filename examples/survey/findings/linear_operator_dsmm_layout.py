"""linear_operator 0.6.1: backward of DSMM raises for a cotangent whose memory is transposed: it uses view."""

import torch
from linear_operator.functions import dsmm

sparse = torch.eye(3, dtype=torch.float64).to_sparse()
dense = torch.randn(2, 2, 3, 4, dtype=torch.float64, requires_grad=True)
cotangent = torch.ones(4, 3, 2, 2, dtype=torch.float64).permute(3, 2, 1, 0)
y = dsmm(sparse, dense)
print(
    "gradient for a contiguous cotangent:",
    torch.autograd.grad(y, dense, torch.ones_like(y), retain_graph=True)[0].shape,
)
try:
    torch.autograd.grad(y, dense, cotangent)
except RuntimeError as error:
    print("for a transposed one:", error)
    raise SystemExit(1) from None
