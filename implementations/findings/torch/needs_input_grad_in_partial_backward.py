"""In a backward pass for some inputs only, ctx.needs_input_grad is True for the others as well.

Each flag should say whether the pass needs that gradient. "Extending PyTorch", step 1, says "whether each input needs
gradient computation", but not whether in this pass or at all: a difference.
https://docs.pytorch.org/docs/stable/notes/extending.html#how-to-use, https://github.com/pytorch/pytorch/issues/174017
"""

import torch

seen = []


class Sum(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        return x + y

    @staticmethod
    def backward(ctx, g):
        seen.append(ctx.needs_input_grad)
        return g, g


x, y = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
torch.autograd.grad(Sum.apply(x, y).sum(), x)
if seen != [(True, False)]:
    print(f"needs_input_grad in a pass that is asked for x alone is {seen[0]}, but should be (True, False)")
    raise SystemExit(1)
print("holds")
