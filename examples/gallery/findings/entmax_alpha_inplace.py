"""entmax 1.3: EntmaxBisectFunction keeps ctx.alpha: changed in place before backward, it makes gradients wrong."""

import torch
from entmax.root_finding import EntmaxBisectFunction

scores = torch.tensor([[0.3, -0.2, 0.9, 0.1]], dtype=torch.float64, requires_grad=True)
alpha = torch.tensor(1.4, dtype=torch.float64, requires_grad=True)
weights = torch.tensor([[1.0, 2.0, 3.0, 4.0]], dtype=torch.float64)
p = EntmaxBisectFunction.apply(scores, alpha, -1)
before = torch.autograd.grad(p, [scores, alpha], weights, retain_graph=True)
with torch.no_grad():
    alpha.add_(0.4)
try:
    after = torch.autograd.grad(p, [scores, alpha], weights)
except RuntimeError as error:
    print("refused, as it should be:", error)
    raise SystemExit(0) from None
for name, a, b in zip(("scores", "alpha"), before, after, strict=True):
    print(f"gradient of {name}: {a.tolist()}; after alpha.add_(0.4), without an error: {b.tolist()}")
raise SystemExit(not torch.allclose(before[0], after[0]))
