"""The bare decorators custom_fwd and custom_bwd of torch.amp are a TypeError: device_type has no default.

They should work without arguments. "Autocast and Custom Autograd Functions": "Apply custom_fwd and custom_bwd (with no
arguments) to forward and backward respectively."
https://docs.pytorch.org/docs/stable/notes/amp_examples.html#functions-with-multiple-inputs-or-autocastable-ops
"""

import torch
from torch.amp import custom_bwd, custom_fwd

try:

    class MyMM(torch.autograd.Function):
        @staticmethod
        @custom_fwd
        def forward(ctx, a, b):
            ctx.save_for_backward(a, b)
            return a.mm(b)

        @staticmethod
        @custom_bwd
        def backward(ctx, grad):
            a, b = ctx.saved_tensors
            return grad.mm(b.t()), a.t().mm(grad)

except TypeError as error:
    print(f"the example of the documentation raises {error!r}, but should work")
    raise SystemExit(1) from None
print("holds")
