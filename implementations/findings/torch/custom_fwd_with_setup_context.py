"""custom_fwd and custom_bwd fail for a Function with setup_context: backward raises an AttributeError.

The documentation of custom_bwd says: "Ensures that backward executes with the same autocast state as forward."
https://docs.pytorch.org/docs/stable/amp.html#torch.amp.custom_bwd
https://github.com/pytorch/pytorch/issues/132388
"""

import torch


class Double(torch.autograd.Function):
    @staticmethod
    @torch.amp.custom_fwd(device_type="cpu")
    def forward(x):
        return 2 * x

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    @torch.amp.custom_bwd(device_type="cpu")
    def backward(ctx, g):
        return 2 * g


x = torch.ones((), requires_grad=True)
try:
    (got,) = torch.autograd.grad(Double.apply(x), x)
except AttributeError as error:
    print(f"the gradient of 2 * x should be 2, but backward raises {error!r}")
    raise SystemExit(1) from None
print(f"holds: the gradient is {got}")
