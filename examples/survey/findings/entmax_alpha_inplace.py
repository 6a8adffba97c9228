"""entmax 1.3: alpha is kept on ctx, and if it changes in place before backward gradients are wrong without a word."""

import torch
from entmax.root_finding import EntmaxBisectFunction, NormmaxBisectFunction

SCORES = [0.5, -0.3, 1.2]

bad = 0
for function, number in ((EntmaxBisectFunction, 1.5), (NormmaxBisectFunction, 3.0)):
    x = torch.tensor(SCORES, dtype=torch.float64, requires_grad=True)
    alpha = torch.tensor(number, dtype=torch.float64)
    y = function.apply(x, alpha)
    weights = torch.arange(3, dtype=torch.float64)
    before = torch.autograd.grad(y, x, weights, retain_graph=True)[0]
    alpha.fill_(2.5)
    try:
        after = torch.autograd.grad(y, x, weights)[0]
    except RuntimeError as error:
        print(function.__name__, "refused, as it should be:", error)
        continue
    print(f"{function.__name__}: {before.tolist()}; after alpha.fill_(2.5): {after.tolist()}")
    bad += not torch.allclose(before, after)
raise SystemExit(bad > 0)
