"""pypose 0.9.5: se3 Exp is flat at turns below 1e-8 in double precision, but its gradient is not 0."""

import pypose
import torch

SHIFT = torch.tensor([0.2, -0.3, -0.2], dtype=torch.float64)


def moved(turn):
    return pypose.se3(torch.cat([SHIFT, turn])).Exp().Act(torch.zeros(3, dtype=torch.float64)).sum()


still = torch.zeros(3, dtype=torch.float64, requires_grad=True)
gradient = torch.autograd.grad(moved(still), still)[0][0].item()
bad = 0
for step in (1e-4, 1e-6, 1e-9):
    slope = ((moved(torch.tensor([step, 0, 0])) - moved(still)) / step).item()
    print(f"turn {step:g}: slope {slope:.4g}, gradient {gradient:.4g}")
    bad += abs(slope - gradient) > 0.01
raise SystemExit(bad > 0)
