"""pypose 0.9.5: the gradient of so3_Exp is NaN in float16 for angles near 0.001."""

import torch
from pypose.lietensor.operation import so3_Exp


def gradient(dtype):
    angles = torch.tensor([0.0006, 0.0007, 0.0008], dtype=dtype, requires_grad=True)
    return torch.autograd.grad(so3_Exp.apply(angles).sum(), angles)[0].tolist()


print("float16", gradient(torch.float16), "float64", gradient(torch.float64))
raise SystemExit(any(g != g for g in gradient(torch.float16)))
