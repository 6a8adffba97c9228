"""With is_grads_batched and create_graph, a part of the second derivatives is left out where backward calls a Function.

The same pass with one cotangent is right. torch.autograd.grad, create_graph: "If True, graph of the derivative will be
constructed, allowing to compute higher order derivative products."
https://docs.pytorch.org/docs/stable/generated/torch.autograd.grad.html
"""

import torch


class Function(torch.autograd.Function):
    @classmethod
    def save(cls, ctx, *tensors):
        ctx.save_for_backward(*tensors)
        return tensors[0] * tensors[-1]


class Times(Function):
    forward = Function.save
    backward = staticmethod(lambda ctx, g: tuple(g * x for x in ctx.saved_tensors[::-1]))


class Square(Function):
    forward = Function.save
    backward = staticmethod(lambda ctx, g: 2 * Times.apply(ctx.saved_tensors[0], g))


def second_derivative(cotangent, **options):
    x = torch.tensor(3.0, requires_grad=True)
    y = Square.apply(x) + x**2
    (first,) = torch.autograd.grad(y, x, cotangent, create_graph=True, **options)
    return torch.autograd.grad(first.sum(), x)[0].item()


plain = second_derivative(torch.tensor(1.0))
batched = second_derivative(torch.tensor([1.0]), is_grads_batched=True)
if plain != batched:
    print(f"the second derivative of 2 * x ** 2 is {plain}, but with is_grads_batched {batched}")
    raise SystemExit(1)
print("holds")
