"""gpytorch 1.15.2: the second derivative of QuadFormDiagonal is wrong, without a word: backward saves matrix @ rhs."""

import torch
from gpytorch.variational.large_batch_variational_strategy import QuadFormDiagonal

MATRIX = torch.tensor([[2.0, 1.0], [1.0, 3.0]], dtype=torch.float64)


def derivatives(diagonal):
    rhs = torch.tensor([[1.0], [2.0]], dtype=torch.float64, requires_grad=True)
    first = torch.autograd.grad(diagonal(rhs).pow(2).sum(), rhs, create_graph=True)[0]
    return first.flatten().tolist(), torch.autograd.grad(first.sum(), rhs)[0].flatten().tolist()


got = derivatives(lambda rhs: QuadFormDiagonal.apply(MATRIX, rhs))
expected = derivatives(lambda rhs: (rhs * (MATRIX @ rhs)).sum(-2))
print("first and second derivative: QuadFormDiagonal", got, "plain torch", expected)
raise SystemExit(any(abs(a - b) > 1e-6 for a, b in zip(got[1], expected[1], strict=True)))
