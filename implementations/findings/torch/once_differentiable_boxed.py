"""once_differentiable has no effect on a backward with boxed_grads_call: the second derivative is silently wrong.

To request it should be an error. "Extending PyTorch", step 3: "With this decorator, attempts to perform double
backward through your function will produce an error."
https://docs.pytorch.org/docs/stable/notes/extending.html#how-to-use
"""

import torch


class Square(torch.autograd.Function):
    boxed_grads_call = True

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grads):
        (g,) = grads
        (x,) = ctx.saved_tensors
        return 2 * x * g


x = torch.full((), 3.0, requires_grad=True)
(first,) = torch.autograd.grad(Square.apply(x) ** 2 + x**3, x, create_graph=True)
try:
    first.backward()
except RuntimeError as error:
    print(f"holds: {error!r}")
else:
    print(f"the second derivative of x ** 4 + x ** 3 at 3 is {x.grad}, but there should be an error: it is 126")
    raise SystemExit(1)
