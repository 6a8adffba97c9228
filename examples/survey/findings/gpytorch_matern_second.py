"""gpytorch 1.15.2: MaternCovariance's second derivative by the lengthscale is missing, without a word."""

import torch
from gpytorch.functions import MaternCovariance

POINTS = torch.tensor([[0.0], [0.7], [1.9]], dtype=torch.float64)


def distances(a, b):
    return (a.unsqueeze(-2) - b.unsqueeze(-3)).abs().sum(-1)


def derivatives(covariance):
    lengthscale = torch.tensor([[0.8]], dtype=torch.float64, requires_grad=True)
    first = torch.autograd.grad((covariance(lengthscale) ** 2).sum(), lengthscale, create_graph=True)[0]
    return first.item(), torch.autograd.grad(first, lengthscale)[0].item()


got = derivatives(lambda scale: MaternCovariance.apply(POINTS, POINTS, scale, 0.5, distances))
expected = derivatives(lambda scale: torch.exp(-distances(POINTS, POINTS) / scale))
print("first and second derivative: MaternCovariance", got, "plain torch", expected)
raise SystemExit(abs(got[1] - expected[1]) > 1e-6)
