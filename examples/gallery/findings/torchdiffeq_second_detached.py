"""torchdiffeq 0.2.5: odeint_adjoint's gradients are detached under create_graph: a penalty on them is ignored."""

import math

import torch
from torchdiffeq import odeint, odeint_adjoint


def penalized(solve):
    rate = torch.tensor(0.7, dtype=torch.float64, requires_grad=True)
    y0 = torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True)
    options = {"adjoint_params": (rate,)} if solve is odeint_adjoint else {}
    y = solve(lambda _, y: -rate * y, y0, torch.tensor([0.0, 1.0], dtype=torch.float64), **options)[-1]
    gradient = torch.autograd.grad(y.sum(), y0, create_graph=True)[0]
    return torch.autograd.grad((y**2).sum() + 10 * (gradient**2).sum(), rate)[0].item()


expected = -50 * math.exp(-1.4)
found = penalized(odeint_adjoint)
print(f"by the rate: odeint_adjoint {found:.6f}, odeint {penalized(odeint):.6f}, exact {expected:.6f}")
raise SystemExit(abs(found - expected) > 1e-3)
