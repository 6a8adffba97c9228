"""Changing a tensor in place raises no error if another tensor shares its storage.

It should raise one. "In-place operations with autograd" says: "This can be tricky, especially if there are many
Tensors that reference the same storage (e.g. created by indexing or transposing), and in-place functions will raise
an error if the storage of modified inputs is referenced by any other Tensor."
https://docs.pytorch.org/docs/stable/notes/autograd.html#in-place-operations-with-autograd
"""

import torch


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(2)

    @staticmethod
    def backward(ctx, g):
        return 2 * g


x = torch.ones(3, requires_grad=True) * 1
other = x[:2]
try:
    Double.apply(x)
except RuntimeError as error:
    print(f"holds: {error!r}")
else:
    print(f"there is no error, but should be one: x[:2], made before, is now {other.tolist()}")
    raise SystemExit(1)
