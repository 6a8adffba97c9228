"""linear_operator 0.6.1: pivoted_cholesky of a float16 matrix works, and then backward raises."""

import torch
from linear_operator import to_linear_operator

matrix = torch.tensor([[2.0, 1.0], [1.0, 2.0]], dtype=torch.float16, requires_grad=True)
root = to_linear_operator(matrix).pivoted_cholesky(rank=2)
try:
    root.sum().backward()
except NotImplementedError as raised:
    print("forward gives", root.tolist(), "and backward raises", raised)
    raise SystemExit(1) from None
