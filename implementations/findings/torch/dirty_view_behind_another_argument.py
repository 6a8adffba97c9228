"""A view that a Function takes after another argument and changes in place gets wrong gradients without an error.

The gradients of x and of the base should be right. "In-place correctness checks": "This ensures that if you're using
in-place functions and not seeing any errors, you can be sure that the computed gradients are correct."
https://docs.pytorch.org/docs/stable/notes/autograd.html#in-place-correctness-checks
"""

import torch


class Add(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, changed):
        ctx.mark_dirty(changed)
        return changed.mul_(3).add_(2 * x)

    @staticmethod
    def backward(ctx, g):
        return 2 * g, 3 * g


x, leaf = torch.ones(2, requires_grad=True), torch.ones(3, requires_grad=True)
base = leaf * 1
Add.apply(x, base[:2])
try:
    gradients = torch.autograd.grad(base.sum(), (x, leaf), allow_unused=True)
except RuntimeError as error:
    print(f"holds: {error!r}")
    raise SystemExit(0) from None
got = [None if g is None else g.tolist() for g in gradients]
if got != [[2, 2], [3, 3, 1]]:
    print(f"the gradients of x and of the base are {got}, but should be [[2, 2], [3, 3, 1]]")
    raise SystemExit(1)
print("holds")
