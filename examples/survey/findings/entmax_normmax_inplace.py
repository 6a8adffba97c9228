"""entmax 1.3: NormmaxBisectFunction keeps ctx.alpha: changed in place before backward, it makes gradients wrong."""

import torch
from entmax.root_finding import NormmaxBisectFunction

scores = torch.tensor([[0.3, -0.2, 0.9, 0.1]], dtype=torch.float64, requires_grad=True)
alpha = torch.tensor(2.0, dtype=torch.float64)
weights = torch.tensor([[1.0, 2.0, 3.0, 4.0]], dtype=torch.float64)
p = NormmaxBisectFunction.apply(scores, alpha, -1, 60)
before = torch.autograd.grad(p, scores, weights, retain_graph=True)[0]
alpha.add_(0.4)
try:
    after = torch.autograd.grad(p, scores, weights)[0]
except RuntimeError as error:
    print("refused, as it should be:", error)
    raise SystemExit(0) from None
print(f"gradient {before.tolist()}; after alpha.add_(0.4), without an error: {after.tolist()}")
raise SystemExit(not torch.allclose(before, after))
