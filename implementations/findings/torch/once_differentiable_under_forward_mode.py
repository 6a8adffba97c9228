"""func.jvp of func.grad through a once_differentiable backward gives 0 if its cotangent is not constant.

It should be right or an error. "What are composable function transforms?": "These function transforms can compose with
each other arbitrarily."
https://docs.pytorch.org/docs/stable/func.html#what-are-composable-function-transforms
"""

import torch


class Square(torch.autograd.Function):
    @staticmethod
    def forward(x):
        return x * x

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, g):
        return 2 * ctx.saved_tensors[0] * g

    @staticmethod
    def jvp(ctx, t):
        return 2 * ctx.saved_tensors[0] * t


gradient = torch.func.grad(lambda x: Square.apply(x) ** 2)
try:
    got = torch.func.jvp(gradient, (torch.tensor(3.0),), (torch.tensor(1.0),))[1]
except RuntimeError as error:
    print(f"holds: {error!r}")
    raise SystemExit(0) from None
if got != 108:
    print(f"the second derivative of x ** 4 at 3 is {got}, but should be 108 or an error")
    raise SystemExit(1)
print("holds")
