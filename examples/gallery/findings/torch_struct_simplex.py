"""torch-struct 0.5: the gradient of _SimplexProject is not that of its value, which has |w| in place of |w|^2 / 2."""

import torch
from torch_struct.semirings.sparse_max import _SimplexProject

x = torch.tensor([[0.3, 0.1, -0.2, 0.25]], dtype=torch.float64, requires_grad=True)
value = _SimplexProject.apply(x, -1)
got = torch.autograd.grad(value.sum(), x)[0][0]
steps = 1e-6 * torch.eye(4, dtype=torch.float64)
expected = torch.cat([(_SimplexProject.apply(x + s, -1) - _SimplexProject.apply(x - s, -1)) / 2e-6 for s in steps])
print("value", value.item(), "of sparsemax", ((x * got).sum() - (got**2).sum() / 2).item())
print("gradient", got.tolist(), "by differences", expected.tolist())
raise SystemExit(not torch.allclose(got, expected, atol=1e-5))
