"""entmax 1.3: the gradient of NormmaxBisectFunction is NaN for a large alpha: a probability's power overflows."""

import torch
from entmax.root_finding import NormmaxBisectFunction

SCORES = torch.tensor([[0.5, 0.3, 0.2]], dtype=torch.float64)
WEIGHTS = torch.tensor([[1.0, 2.0, 3.0]], dtype=torch.float64)


def value(scores, alpha):
    return (NormmaxBisectFunction.apply(scores, alpha, -1, 60) * WEIGHTS).sum()


bad = 0
for alpha in (2, 1000):
    scores = SCORES.clone().requires_grad_()
    got = torch.autograd.grad(value(scores, alpha), scores)[0]
    steps = 1e-6 * torch.eye(3, dtype=torch.float64)
    expected = [(value(SCORES + s, alpha) - value(SCORES - s, alpha)).item() / 2e-6 for s in steps]
    print(f"alpha {alpha}: probabilities {NormmaxBisectFunction.apply(SCORES, alpha, -1, 60).tolist()}")
    print(f"    gradient {got[0].tolist()}, by differences {expected}")
    bad += bool(got.isnan().any())
raise SystemExit(bad > 0)
