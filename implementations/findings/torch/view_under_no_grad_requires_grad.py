"""Under no_grad, the output of a custom Function that returns a view of its input requires grad.

It has no grad_fn, so nothing can be differentiated through it. The documentation of torch.no_grad says:
"In this mode, the result of every computation will have requires_grad=False, even when the inputs have
requires_grad=True."
https://docs.pytorch.org/docs/stable/generated/torch.no_grad.html
"""

import torch


class First(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x[0]

    @staticmethod
    def backward(ctx, g):
        return g.new_tensor([g, 0.0])


x = torch.ones(2, requires_grad=True)
with torch.no_grad():
    y = First.apply(x)
if y.requires_grad:
    print(f"requires_grad of the output is True (grad_fn is {y.grad_fn}), but should be False")
    raise SystemExit(1)
print("holds")
