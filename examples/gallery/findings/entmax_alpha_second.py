"""entmax 1.3: second derivatives of EntmaxBisectFunction that go through alpha are wrong, without a word."""

import torch
from entmax.root_finding import EntmaxBisectFunction

SCORES = torch.tensor([[0.2, 0.1, -0.1]], dtype=torch.float64, requires_grad=True)
WEIGHTS = torch.tensor([[1.0, 2.0, 4.0]], dtype=torch.float64)


def gradients(alpha, create_graph=False):
    alpha = torch.as_tensor(alpha, dtype=torch.float64).requires_grad_()
    p = EntmaxBisectFunction.apply(SCORES, alpha, -1, 60)
    by_scores, by_alpha = torch.autograd.grad((p * WEIGHTS).sum(), [SCORES, alpha], create_graph=create_graph)
    return alpha, by_scores[0, 0], by_alpha


alpha, *found = gradients(1.5, True)
second = [torch.autograd.grad(g, alpha, retain_graph=True)[0].item() for g in found]
ahead, behind = gradients(1.5001)[1:], gradients(1.4999)[1:]
expected = [(a - b).item() / 2e-4 for a, b in zip(ahead, behind, strict=True)]
print("by alpha of the gradients by a score and by alpha:", second, "by differences", expected)
raise SystemExit(any(abs(a - b) > 1e-4 for a, b in zip(second, expected, strict=True)))
