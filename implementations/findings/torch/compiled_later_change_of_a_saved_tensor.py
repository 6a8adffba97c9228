"""With backend eager a tensor that a Function saved may be changed after the call: the gradient is wrong, silently.

The page on autograd mechanics says: "This ensures that if you're using in-place functions and not seeing any errors,
you can be sure that the computed gradients are correct."
https://docs.pytorch.org/docs/stable/notes/autograd.html#in-place-correctness-checks
"""

import torch


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * g * x


leaf = torch.ones(2, requires_grad=True)
x = leaf * 1
y = torch.compile(lambda x: Square.apply(x), backend="eager")(x)
with torch.no_grad():
    x.add_(1)
try:
    (gradient,) = torch.autograd.grad(y.sum(), leaf)
except RuntimeError:
    gradient = None
if gradient is not None and gradient.tolist() != [2, 2]:
    print(f"no error, but the gradient {gradient.tolist()} of changed values, which should be [2.0, 2.0]")
    raise SystemExit(1)
print("holds")
