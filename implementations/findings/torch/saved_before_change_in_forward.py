"""If forward saves an input and then changes it in place, saved_tensors gives the changed values without an error.

Reading it should raise. The documentation of save_for_backward says: "Before returning them to the user, a check is
made to ensure they weren't used in any in-place operation that modified their content."
https://docs.pytorch.org/docs/stable/generated/torch.autograd.function.FunctionCtx.save_for_backward.html
"""

import torch


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        ctx.mark_dirty(x)
        return x.mul_(x)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * x * g


leaf = torch.full((2,), 3.0, requires_grad=True)
y = Square.apply(leaf * 1)
try:
    got = torch.autograd.grad(y.sum(), leaf)[0].tolist()
except RuntimeError as error:
    print(f"holds: {error!r}")
else:
    print(f"the gradient of x ** 2 at 3 is {got}, but there should be an error: the derivative is 6")
    raise SystemExit(1)
