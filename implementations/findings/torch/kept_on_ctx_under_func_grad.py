"""Under nested func.grad the second derivative flows through an input that is assigned to ctx.

The documentation says that such tensors "will not get tracked", so nothing should flow. But it also says that
the result is undefined, so no promise is broken.
https://docs.pytorch.org/docs/stable/notes/extending.func.html#limitations-and-gotchas
"""

import torch


class Square(torch.autograd.Function):
    @staticmethod
    def forward(x):
        return x * x

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.x = inputs[0]

    @staticmethod
    def backward(ctx, g):
        return 2 * ctx.x * g


got = torch.func.grad(torch.func.grad(Square.apply))(torch.tensor(3.0)).item()
if got:
    print(f"what flows through ctx.x into the second derivative is {got}, but should be nothing")
    raise SystemExit(1)
print("holds")
