"""Second derivatives flow through an input that is kept as an attribute of ctx.

They should not. "Extending PyTorch", the note after the examples: "In this case, the tensors saved with
save_for_backward can also be used in the backward and have gradients flowing back but tensors saved in the ctx won't
have gradients flowing back for them."
https://docs.pytorch.org/docs/stable/notes/extending.html#example
"""

import torch


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.x = x
        return x * x

    @staticmethod
    def backward(ctx, g):
        return 2 * ctx.x * g


x = torch.full((), 3.0, requires_grad=True)
(first,) = torch.autograd.grad(Square.apply(x), x, create_graph=True)
got = torch.autograd.grad(first, x)[0].item() if first.requires_grad else 0
if got:
    print(f"what flows through ctx.x into the second derivative is {got}, but should be nothing")
    raise SystemExit(1)
print("holds")
