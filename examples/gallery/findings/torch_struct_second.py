"""torch-struct 0.5: the gradient of _SimplexProject is detached from the input: second derivatives lack that part."""

import torch
from torch_struct.semirings.sparse_max import _SimplexProject

X = torch.tensor([[0.3, 0.1, -0.2, 0.25]], dtype=torch.float64, requires_grad=True)


def gradient(x, create_graph=False):
    return torch.autograd.grad(_SimplexProject.apply(x, -1).sum(), x, create_graph=create_graph)[0]


second = torch.autograd.grad(gradient(X, True)[0, 0], X, allow_unused=True)[0]
steps = 1e-6 * torch.eye(4, dtype=torch.float64)
expected = torch.stack([(gradient(X + s) - gradient(X - s))[0, 0] / 2e-6 for s in steps])
print("second derivative", second if second is None else second.tolist(), "by differences", expected.tolist())
raise SystemExit(second is None or not torch.allclose(second[0], expected, atol=1e-5))
