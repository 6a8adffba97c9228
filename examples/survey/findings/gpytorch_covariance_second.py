"""gpytorch 1.15.2: second derivatives of MaternCovariance and RBFCovariance are wrong, without a word."""

import torch
from gpytorch.functions import MaternCovariance, RBFCovariance

POINTS = torch.tensor([[0.0], [0.7], [1.9]], dtype=torch.float64)
STEP = 1e-5


def distances(a, b):
    return (a.unsqueeze(-2) - b.unsqueeze(-3)).abs().sum(-1)


def first(covariance, value):
    lengthscale = torch.tensor([[value]], dtype=torch.float64, requires_grad=True)
    loss = (covariance(lengthscale) ** 2).sum()
    return lengthscale, torch.autograd.grad(loss, lengthscale, create_graph=True)[0]


bad = 0
for name, covariance in (
    ("RBF", lambda scale: RBFCovariance.apply(POINTS, POINTS, scale, lambda a, b: distances(a, b) ** 2)),
    ("Matern 0.5", lambda scale: MaternCovariance.apply(POINTS, POINTS, scale, 0.5, distances)),
    ("Matern 1.5", lambda scale: MaternCovariance.apply(POINTS, POINTS, scale, 1.5, distances)),
    ("Matern 2.5", lambda scale: MaternCovariance.apply(POINTS, POINTS, scale, 2.5, distances)),
):
    lengthscale, gradient = first(covariance, 0.8)
    got = torch.autograd.grad(gradient, lengthscale)[0].item()
    expected = (first(covariance, 0.8 + STEP)[1] - first(covariance, 0.8 - STEP)[1]).item() / (2 * STEP)
    print(f"{name}: second derivative by the lengthscale {got}, by differences {expected}")
    bad += abs(got - expected) > 1e-4
raise SystemExit(bad > 0)
