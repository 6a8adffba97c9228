"""gpytorch 1.15.2: RBFCovariance's second derivative by the lengthscale is wrong, without a word."""

import torch
from gpytorch.functions import RBFCovariance

POINTS = torch.tensor([[0.0], [0.7], [1.9]], dtype=torch.float64)


def squared(a, b):
    return (a.unsqueeze(-2) - b.unsqueeze(-3)).pow(2).sum(-1)


def derivatives(covariance):
    lengthscale = torch.tensor([[0.8]], dtype=torch.float64, requires_grad=True)
    first = torch.autograd.grad((covariance(lengthscale) ** 2).sum(), lengthscale, create_graph=True)[0]
    return first.item(), torch.autograd.grad(first, lengthscale)[0].item()


got = derivatives(lambda scale: RBFCovariance.apply(POINTS, POINTS, scale, squared))
expected = derivatives(lambda scale: torch.exp(-squared(POINTS / scale, POINTS / scale) / 2))
print("first and second derivative: RBFCovariance", got, "plain torch", expected)
raise SystemExit(abs(got[1] - expected[1]) > 1e-6)
