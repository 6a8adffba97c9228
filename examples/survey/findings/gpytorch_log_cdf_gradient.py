"""gpytorch 1.15.2: below -1, LogNormalCDF and its gradient are off by 1e-3: a series for the far tail is used there."""

import torch
from gpytorch.functions._log_normal_cdf import LogNormalCDF

STEP = 1e-6


def value(z):
    return LogNormalCDF.apply(torch.tensor([z], dtype=torch.float64))


bad = 0
for z in (-0.99, -1.01, -1.5, -2.0):
    x = torch.tensor([z], dtype=torch.float64, requires_grad=True)
    y = LogNormalCDF.apply(x)
    got = torch.autograd.grad(y.sum(), x)[0].item()
    exact = torch.special.log_ndtr(x)
    expected = torch.autograd.grad(exact.sum(), x)[0].item()
    by_differences = (value(z + STEP) - value(z - STEP)).item() / (2 * STEP)
    print(f"at {z}: value {y.item():.9f}, exact {exact.item():.9f}")
    print(f"    gradient {got:.9f}, by differences of the value {by_differences:.9f}, exact {expected:.9f}")
    bad += abs(got - by_differences) > 1e-6
raise SystemExit(bad > 0)
