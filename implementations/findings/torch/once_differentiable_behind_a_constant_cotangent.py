"""If its cotangent does not require grad, a once_differentiable backward is differentiated twice without an error.

The second derivative silently lacks the term, and is zero under func.grad of func.grad. Both should raise.
"Extending PyTorch", step 3: "With this decorator, attempts to perform double
backward through your function will produce an error."
https://docs.pytorch.org/docs/stable/notes/extending.html#how-to-use
"""

import torch


class Square(torch.autograd.Function):
    @staticmethod
    def forward(x):
        return x * x

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, g):
        return 2 * ctx.saved_tensors[0] * g


def accepted(name, attempt):
    try:
        print(f"{name} at 3 is {attempt()}, but there should be an error")
        return True
    except RuntimeError as error:
        print(f"{name} raises {error!r}")


x = torch.full((), 3.0, requires_grad=True)
first = torch.autograd.grad(Square.apply(x) + x**3, x, create_graph=True)[0]
second = accepted("the second derivative of x ** 2 + x ** 3", lambda: first.backward() or x.grad)
if accepted("func.grad of func.grad of x ** 2", lambda: torch.func.grad(torch.func.grad(Square.apply))(x)) or second:
    raise SystemExit(1)
print("holds")
