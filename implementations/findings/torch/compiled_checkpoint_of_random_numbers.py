"""With torch.compile(backend="eager") a checkpoint draws other random numbers in its recomputation.

The gradient is silently wrong. The documentation says: "Note that under torch.compile, this flag doesn't take effect
and we always preserve RNG state."
https://docs.pytorch.org/docs/stable/checkpoint.html#torch.utils.checkpoint.checkpoint
"""

import torch
from torch.utils.checkpoint import checkpoint


def f(x):
    return checkpoint(lambda x: x * torch.rand_like(x), x, use_reentrant=False)


x = torch.ones(2, requires_grad=True)
y = torch.compile(f, backend="eager")(x)
(g,) = torch.autograd.grad(y.sum(), x)
if not torch.equal(g, y):
    print(f"the factors of forward are {y.tolist()}, and so should the gradient be, which is {g.tolist()}")
    raise SystemExit(1)
print("holds")
