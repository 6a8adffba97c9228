"""entmax 1.3: second derivatives of the losses are 0, without a word: what is saved is detached."""

import torch
from entmax import losses

ARGUMENTS = {
    "SparsemaxLossFunction": (None,), "SparsemaxBisectLossFunction": (50,), "Entmax15LossFunction": (100,),
    "EntmaxBisectLossFunction": (1.5, 50), "NormmaxBisectLossFunction": (2, 50),
}  # fmt: skip
SCORES = torch.tensor([[0.3, 0.1, -0.2]], dtype=torch.float64)
TARGET = torch.tensor([0])


def gradient(function, scores, weight=1.0):
    scores = scores.clone().requires_grad_()
    loss = function.apply(scores, TARGET, *ARGUMENTS[function.__name__])
    return scores, torch.autograd.grad((loss * weight).sum(), scores, create_graph=True)[0]


bad = 0
step = torch.tensor([[1e-5, 0, 0]], dtype=torch.float64)
for function in (getattr(losses, name) for name in ARGUMENTS):
    # A weight that is learned as well, so that the penalty has a gradient at all.
    weight = torch.tensor(1.0, dtype=torch.float64, requires_grad=True)
    scores, first = gradient(function, SCORES, weight)
    second = torch.autograd.grad(first[0, 0], scores, allow_unused=True)[0]
    got = 0.0 if second is None else second[0, 0].item()
    expected = ((gradient(function, SCORES + step)[1] - gradient(function, SCORES - step)[1])[0, 0] / 2e-5).item()
    print(f"{function.__name__}: second derivative {got}, by differences {expected}")
    bad += abs(got - expected) > 1e-4
raise SystemExit(bad > 0)
