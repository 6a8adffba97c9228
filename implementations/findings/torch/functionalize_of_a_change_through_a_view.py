"""functionalize(grad(f), remove="mutations_and_views") gives a wrong gradient if f changes a view in place.

The gradient should be that of grad(f). The documentation of torch.func.functionalize says: "If you want to use
autograd, you can compute gradients directly with functionalize(grad(f))." It is right with remove="mutations".
https://docs.pytorch.org/docs/stable/generated/torch.func.functionalize.html
"""

import torch

weights = torch.tensor([[1.0, 2.0], [3.0, 4.0]])


def f(x):
    t = x * 1
    t[:, 0].mul_(0)
    return torch.sum(t * weights)


x = torch.ones(2, 2)
expected = torch.tensor([[0.0, 2.0], [0.0, 4.0]])
got = torch.func.functionalize(torch.func.grad(f), remove="mutations_and_views")(x)
if not torch.equal(got, expected):
    print(f"functionalize gives the gradient {got.tolist()}, but should give {expected.tolist()}")
    raise SystemExit(1)
print("holds")
