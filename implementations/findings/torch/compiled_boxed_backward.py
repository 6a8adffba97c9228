"""A compiled backward with boxed_grads_call gets the cotangent, instead of a list of it, if there is one output.

grads[0] is then the cotangent's first element, and the gradient is silently wrong. "Extending PyTorch", step 2: "When
set to True on the Function subclass, backward receives grads as a single mutable list argument instead of individual
args in an immutable tuple."
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
    def backward(ctx, grads):
        return 2 * ctx.saved_tensors[0] * grads[0]


gradients = []
for call in (Square.apply, torch.compile(lambda x: Square.apply(x), backend="eager")):
    x = torch.ones(2, requires_grad=True)
    gradients.append(torch.autograd.grad(call(x), x, torch.tensor([1.0, 5.0]))[0].tolist())
if gradients[1] != gradients[0]:
    print(f"the gradient of compiled code is {gradients[1]}, but should be {gradients[0]}")
    raise SystemExit(1)
print("holds")
