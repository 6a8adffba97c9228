"""gpytorch 1.15.2: RBFCovariance's gradient is NaN where the squared distance overflows: 300 in float16."""

import torch
from gpytorch.functions import RBFCovariance


def squared(a, b):
    return (a.unsqueeze(-2) - b.unsqueeze(-3)).pow(2).sum(-1)


bad = 0
for dtype, far in ((torch.float16, 300.0), (torch.float32, 1e20)):
    a, b = torch.zeros(1, 1, dtype=dtype), torch.full((1, 1), far, dtype=dtype)
    found = []
    for covariance in (
        lambda a, b, scale: RBFCovariance.apply(a, b, scale, squared),
        lambda a, b, scale: torch.exp(-squared(a / scale, b / scale) / 2),
    ):
        scale = torch.ones(1, 1, dtype=dtype, requires_grad=True)
        found.append(torch.autograd.grad(covariance(a, b, scale).sum(), scale)[0].item())
    print(f"{dtype}, {far:g} apart: RBFCovariance {found[0]}, plain torch {found[1]}")
    bad += found[0] != found[0]
raise SystemExit(bad > 0)
