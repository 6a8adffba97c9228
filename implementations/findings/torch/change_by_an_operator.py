"""A custom operator that changes a tensor leaves its history as it was: the gradient is wrong, silently.

The page on autograd mechanics says: "This ensures that if you're using in-place functions and not seeing any errors,
you can be sure that the computed gradients are correct."
https://docs.pytorch.org/docs/stable/notes/autograd.html#in-place-correctness-checks
"""

import torch


@torch.library.custom_op("findings::triple_", mutates_args={"x"})
def triple_(x: torch.Tensor) -> None:
    x.mul_(3)


leaf = torch.ones(2, requires_grad=True)
x = leaf * 1
try:
    triple_(x)
    (gradient,) = torch.autograd.grad(x.sum(), leaf)
except RuntimeError:
    gradient = None
if gradient is not None and gradient.tolist() != [3, 3]:
    print(f"the values are {x.tolist()} and the gradient {gradient.tolist()}, but should be [3.0, 3.0]")
    raise SystemExit(1)
print("holds")
