"""e3nn 0.6.0: the gradient of soft_unit_step is NaN at small positive numbers: x * x underflows, and 0 / 0."""

import torch
from e3nn.math import soft_unit_step

bad = 0
for dtype, small in ((torch.float16, 1e-4), (torch.bfloat16, 1e-25), (torch.float32, 1e-25), (torch.float64, 1e-200)):
    x = torch.tensor([0.5, small], dtype=dtype, requires_grad=True)
    y = soft_unit_step(x)
    gradient = torch.autograd.grad(y.sum(), x)[0]
    print(f"{dtype} at 0.5 and {small}: value {y.tolist()}, gradient {gradient.tolist()}, but the second should be 0")
    bad += bool(gradient.isnan().any())
raise SystemExit(bad > 0)
