"""entmax 1.3: second derivatives are NaN as soon as one probability is exactly 0: a negative power of it, or a sqrt."""

import torch
from entmax.activations import Entmax15Function
from entmax.root_finding import EntmaxBisectFunction, NormmaxBisectFunction

WEIGHTS = torch.tensor([[1.0, 2.0, 3.0]], dtype=torch.float64)


def first(function, scores, arguments):
    scores = torch.tensor([scores], dtype=torch.float64, requires_grad=True)
    p = function.apply(scores, *arguments)
    return scores, p, torch.autograd.grad((p * WEIGHTS).sum(), scores, create_graph=True)[0]


bad = 0
for function, arguments in (
    (Entmax15Function, (-1, None)),
    (EntmaxBisectFunction, (1.5, -1, 60)),
    (NormmaxBisectFunction, (4, -1, 60)),
):
    scores, p, gradient = first(function, [3.0, 2.8, -5.0], arguments)
    second = torch.autograd.grad(gradient[0, 0], scores)[0]
    ahead, behind = (first(function, [3.0 + step, 2.8, -5.0], arguments)[2][0, 0] for step in (1e-5, -1e-5))
    expected = (ahead - behind).item() / 2e-5
    print(f"{function.__name__}: probabilities {p.tolist()}, gradient {gradient.tolist()}")
    print(f"    derivative of its first entry {second.tolist()}, by differences of the first score {expected}")
    bad += bool(second.isnan().any())
raise SystemExit(bad > 0)
