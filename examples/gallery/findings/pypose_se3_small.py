"""pypose 0.9.5: the float32 gradient of se3 Exp is wrong at small turns: differences cancel down to theta = 1e-7."""

import pypose
import torch

POINT = torch.tensor([0.5, -1.0, 2.0], dtype=torch.float64)
AXIS = torch.tensor([0.6, 0.64, 0.48], dtype=torch.float64)
SHIFT = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)


def gradient(twist, dtype):
    twist = twist.to(dtype).requires_grad_()
    return torch.autograd.grad(pypose.se3(twist).Exp().Act(POINT.to(dtype)).sum(), twist)[0].double()


bad = 0
for angle in (2e-7, 1e-6, 1e-4, 1.0):
    twist = torch.cat([SHIFT, angle * AXIS])
    # Double precision is right a little further out.
    got, expected = gradient(twist, torch.float32), gradient(torch.cat([SHIFT, max(angle, 1e-4) * AXIS]), torch.float64)
    print(f"turn {angle:g}: by the turn {got[3:].tolist()}, should be near {expected[3:].tolist()}")
    bad += (got - expected).abs().max().item() > 0.01
raise SystemExit(bad > 0)
