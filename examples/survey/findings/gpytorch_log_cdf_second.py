"""gpytorch 1.15.2: the second derivative of LogNormalCDF is wrong below -1, without a word."""

import torch
from gpytorch.functions._log_normal_cdf import LogNormalCDF

STEP = 1e-6


def gradient(z):
    x = torch.tensor([z], dtype=torch.float64, requires_grad=True)
    return x, torch.autograd.grad(LogNormalCDF.apply(x).sum(), x, create_graph=True)[0]


bad = 0
for z in (-0.5, -3.0):
    x, first = gradient(z)
    second = torch.autograd.grad(first.sum(), x, allow_unused=True)[0] if first.requires_grad else None
    got = 0.0 if second is None else second.item()
    expected = (gradient(z + STEP)[1] - gradient(z - STEP)[1]).item() / (2 * STEP)
    print(f"at {z}: second derivative {got}, by differences of the gradient {expected}")
    bad += abs(got - expected) > 1e-4
raise SystemExit(bad > 0)
