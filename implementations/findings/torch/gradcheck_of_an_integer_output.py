"""gradcheck of a Function with an integer output before a floating one is an IndexError.

It should be True. The documentation says that it takes "a Python function that takes Tensor inputs and returns a Tensor
or a tuple of Tensors", and returns "True if all differences satisfy allclose condition".
https://docs.pytorch.org/docs/stable/generated/torch.autograd.gradcheck.gradcheck.html
"""

import torch


class IndicesAndTriple(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.argsort(), 3 * x

    @staticmethod
    def backward(ctx, _, g):
        return 3 * g


x = torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True)
try:
    got = torch.autograd.gradcheck(IndicesAndTriple.apply, x)
except (IndexError, RuntimeError) as error:
    got = repr(error)
if got is not True:
    print(f"gradcheck of a right backward gives {got}, but should give True")
    raise SystemExit(1)
print("holds")
