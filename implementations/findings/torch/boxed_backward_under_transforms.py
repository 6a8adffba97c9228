"""Under torch.func.grad a backward with boxed_grads_call gets no list: grads[0] is the first row of the cotangent.

"Extending PyTorch": "When set to True on the Function subclass, backward receives grads as a single mutable list
argument instead of individual args in an immutable tuple."
https://docs.pytorch.org/docs/stable/notes/extending.html#how-to-use
"""

import torch


class Square(torch.autograd.Function):
    boxed_grads_call = True

    @staticmethod
    def forward(x):
        return x * x

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, grads):
        (x,) = ctx.saved_tensors
        return 2 * x * grads[0]


x, weights = torch.tensor([2.0, 3.0]), torch.tensor([10.0, 100.0])
got = torch.func.grad(lambda x: torch.sum(Square.apply(x) * weights))(x).tolist()
if got != [40, 600]:
    print(f"the gradient of 10 * a ** 2 + 100 * b ** 2 at (2, 3) is {got}, but should be [40, 600]")
    raise SystemExit(1)
print("holds")
