"""torchdiffeq 0.2.5: odeint_adjoint's gradients are wrong if a frozen tensor in func changes before backward."""

import torch
from torchdiffeq import odeint, odeint_adjoint


def gradient(solve, change):
    rate = torch.tensor(0.7, dtype=torch.float64)
    y0 = torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True)
    options = {"adjoint_params": (rate,)} if solve is odeint_adjoint else {}
    y = solve(lambda _, y: -rate * y, y0, torch.tensor([0.0, 1.0], dtype=torch.float64), **options)[-1]
    rate.add_(change)
    return torch.autograd.grad(y.sum(), y0)[0]


got, expected = gradient(odeint_adjoint, 1.0), gradient(odeint_adjoint, 0.0)
print("odeint_adjoint", got.tolist(), "rate not changed", expected.tolist(), "odeint", gradient(odeint, 1.0).tolist())
raise SystemExit(not torch.allclose(got, expected, rtol=1e-3))
