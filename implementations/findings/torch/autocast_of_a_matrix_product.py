"""Under autocast backward of the printed QKVProjection fails: its cotangent has lower precision than its saved weight.

Its forward multiplies in bfloat16; its backward runs outside of autocast and multiplies the cotangent, in
bfloat16, by the saved weight in single precision. "Automatic Mixed Precision package": such a Function
needs custom_fwd and custom_bwd.
https://docs.pytorch.org/docs/stable/notes/amp_examples.html#functions-with-multiple-inputs-or-autocastable-ops
"""

import torch


class Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x @ w

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        return g @ w.t(), x.t() @ g


x, w = torch.ones(2, 3, requires_grad=True), torch.ones(3, 4, requires_grad=True)
with torch.autocast("cpu", dtype=torch.bfloat16):
    y = Product.apply(x, w)
try:
    y.sum().backward()
except RuntimeError as refused:
    print(f"got: {refused}; expected: gradients")
    raise SystemExit(1) from None
print("holds")
