"""torch.func transforms do not find the gradient formula of a Function that defines vjp instead of backward.

It should be found. The documentation of Function.backward says: "(Defining this function is equivalent to defining
the vjp function.)"
https://docs.pytorch.org/docs/stable/generated/torch.autograd.Function.backward.html
"""

import torch


class Double(torch.autograd.Function):
    @staticmethod
    def forward(x):
        return 2 * x

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def vjp(ctx, g):
        return 2 * g


x = torch.ones((), requires_grad=True)
print("autograd.grad gives", torch.autograd.grad(Double.apply(x), x)[0].item())
try:
    got = torch.func.grad(Double.apply)(x.detach()).item()
except NotImplementedError as error:
    got = repr(error)
if got != 2:
    print(f"func.grad gives {got}, but should give 2")
    raise SystemExit(1)
print("holds")
