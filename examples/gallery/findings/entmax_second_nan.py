"""entmax 1.3: the second derivative of EntmaxBisectFunction is NaN as soon as one probability is exactly 0."""

import torch
from entmax.root_finding import EntmaxBisectFunction

SCORES = torch.tensor([[2.0, 1.5, -3.0]], dtype=torch.float64, requires_grad=True)


def gradient(scores, create_graph=False):
    p = EntmaxBisectFunction.apply(scores, 1.5, -1, 60)
    return torch.autograd.grad((p**2).sum(), scores, create_graph=create_graph)[0]


second = torch.autograd.grad(gradient(SCORES, True)[0, 0], SCORES)[0]
steps = 1e-5 * torch.eye(3, dtype=torch.float64)
expected = torch.stack([(gradient(SCORES + s) - gradient(SCORES - s))[0, 0] / 2e-5 for s in steps])
print("probabilities", EntmaxBisectFunction.apply(SCORES, 1.5, -1, 60).tolist())
print("second derivative", second[0].tolist(), "by differences", expected.tolist())
raise SystemExit(not torch.allclose(second[0], expected, atol=1e-4))
