"""autograd.grad and backward(inputs=...) differentiate twice through once_differentiable without an error.

The node that raises is not on the way to an input: the result is None, or silently wrong if there are other terms.
There should be an error. "Extending PyTorch", step 3: "With this decorator, attempts to perform double backward through
your function will produce an error." https://docs.pytorch.org/docs/stable/notes/extending.html#how-to-use
"""

import torch


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, g):
        return 2 * ctx.saved_tensors[0] * g


def accepted(name, attempt):
    try:
        print(f"{name} of the derivative gives {attempt()} at 3, but should raise an error")
        return True
    except RuntimeError as error:
        print(f"{name} raises {error!r}")


x = torch.full((), 3.0, requires_grad=True)
alone, summed = (torch.autograd.grad(Square.apply(x) ** 2 + t, x, create_graph=True)[0] for t in (0, x**3))
results = [
    accepted("x ** 4: grad", lambda: torch.autograd.grad(alone, x, allow_unused=True)[0]),
    accepted("x ** 4 + x ** 3: grad", lambda: torch.autograd.grad(summed, x, retain_graph=True)[0]),
    accepted("x ** 4 + x ** 3: backward(inputs=x)", lambda: summed.backward(inputs=[x]) or x.grad),
]
if any(results):
    raise SystemExit(1)
print("holds")
