"""entmax 1.3: the gradient of BudgetBisectFunction is wrong for shapes (B, 1, D): backward returns (B, B, D)."""

import torch
from entmax.root_finding import BudgetBisectFunction

torch.manual_seed(0)
scores = torch.randn(3, 1, 4, dtype=torch.float64) / 3
weights = torch.randn(3, 1, 4, dtype=torch.float64)


def gradient(scores, weights):
    scores = scores.clone().requires_grad_()
    return torch.autograd.grad(BudgetBisectFunction.apply(scores, 2, -1, 60), scores, weights)[0]


got, expected = gradient(scores, weights), gradient(scores[:, 0], weights[:, 0])[:, None]
print("of shape (3, 1, 4)", got.flatten().tolist())
print("of shape (3, 4)   ", expected.flatten().tolist())
raise SystemExit(not torch.allclose(got, expected))
