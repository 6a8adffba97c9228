"""If compiled code changes in place what a Function saved, the gradient is silently that of the changed values.

"In-place correctness checks": "This ensures that if you're using in-place functions and not seeing any errors, you can
be sure that the computed gradients are correct."
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
        return 2 * x * g


@torch.compile(backend="aot_eager", fullgraph=True)
def f(x):
    saved = x.clone()
    y = Square.apply(saved)
    saved += 1
    return y


x = torch.tensor(3.0, requires_grad=True)
try:
    (got,) = torch.autograd.grad(f(x), x)
except RuntimeError as error:
    print(f"holds: {error!r}")
    raise SystemExit(0) from None
if got != 6:
    print(f"the gradient of x ** 2 at 3 is {got}, but should be 6 or an error")
    raise SystemExit(1)
print("holds")
