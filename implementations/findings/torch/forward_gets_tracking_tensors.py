"""forward of a custom Function gets the tensors that apply was given: they require grad and have a grad_fn.

It should get tensors that do not. "Extending PyTorch", step 1: "Tensor arguments that track history (i.e., with
requires_grad=True) will be converted to ones that don't track history before the call, and their use will be
registered in the graph."
https://docs.pytorch.org/docs/stable/notes/extending.html#how-to-use
"""

import torch

seen = []


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        seen.append((x.requires_grad, x.grad_fn is not None))
        return 2 * x

    @staticmethod
    def backward(ctx, g):
        return 2 * g


leaf = torch.ones(2, requires_grad=True)
Double.apply(leaf)
Double.apply(leaf * 1)
if any(any(flags) for flags in seen):
    print(f"requires_grad and having a grad_fn, in forward: {seen}, but should be (False, False) for both")
    raise SystemExit(1)
print("holds")
