"""A program of torch.export with strict=True has silently wrong gradients beside a custom Function.

The graph keeps the no_grad mode of forward, so that only the other term has a gradient: of 3 x * x + x it is 1, and
should be 7 at 1. "Export IR: Training vs Inference": "This Training IR, which may contain mutations, is designed for
training use cases and can be used with eager PyTorch Autograd."
https://docs.pytorch.org/docs/stable/user_guide/torch_compiler/export.html#training-ir-default
"""

import torch


class ThreeSquares(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return 3 * x * x

    @staticmethod
    def backward(ctx, g):
        return 6 * g * ctx.saved_tensors[0]


class Module(torch.nn.Module):
    def forward(self, x):
        return ThreeSquares.apply(x) + x


x = torch.ones(1, requires_grad=True)
program = torch.export.export(Module(), (x,), strict=True).module()
(gradient,) = torch.autograd.grad(program(x), x)
if gradient.item() != 7:
    print(f"the gradient of the exported program is {gradient.item()}, but should be 7.0")
    raise SystemExit(1)
print("holds")
