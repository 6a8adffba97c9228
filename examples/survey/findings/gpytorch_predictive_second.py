"""gpytorch 1.15.2: second derivatives of ComputePredictiveUpdates are wrong without a word.

forward saves an intermediate, the solution of a triangular system, and backward treats it as a constant.
"""

import torch
from gpytorch.variational.variational_strategy import ComputePredictiveUpdates

torch.manual_seed(0)
CHOL = torch.eye(2, dtype=torch.float64) + 0.3 * torch.ones(2, 2, dtype=torch.float64).tril(-1)
COVARIANCE, MIDDLE, VALUES = (torch.randn(2, n, dtype=torch.float64) for n in (3, 2, 1))


def plain(chol, covariance, middle, values):
    """The same in plain torch."""
    term = torch.linalg.solve_triangular(chol, covariance, upper=False)
    return (term.mT @ values.unsqueeze(-1)).squeeze(-1), torch.sum(term.mT * (term.mT @ middle), dim=-1)


def second(function):
    covariance = COVARIANCE.clone().requires_grad_()
    middle = MIDDLE + MIDDLE.mT
    _, variance = function(CHOL.requires_grad_(), covariance, middle, VALUES.squeeze(-1))
    gradient = torch.autograd.grad(variance.sum(), covariance, create_graph=True)[0]
    return torch.autograd.grad(gradient.sum(), covariance, allow_unused=True, materialize_grads=True)[0]


got, expected = second(ComputePredictiveUpdates.apply), second(plain)
print(f"second derivative by the covariance: {got.tolist()}; in plain torch: {expected.tolist()}")
raise SystemExit(not torch.allclose(got, expected))
