"""A program of torch.export with strict=True cannot be differentiated through a custom Function.

The graph keeps the no_grad mode of forward. Its output should require grad. "Export IR: Training vs Inference": "This
Training IR, which may contain mutations, is designed for training use cases and can be used with eager PyTorch
Autograd."
https://docs.pytorch.org/docs/stable/user_guide/torch_compiler/export.html#training-ir-default
"""

import torch


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return 2 * x

    @staticmethod
    def backward(ctx, g):
        return 2 * g


class Module(torch.nn.Module):
    def forward(self, x):
        return Double.apply(x)


x = torch.ones(2, requires_grad=True)
loose, strict = (torch.export.export(Module(), (x,), strict=s).module()(x).requires_grad for s in (False, True))
if not strict:
    print(f"requires_grad of the exported program's output is {loose}, and {strict} if strict, but should be True")
    raise SystemExit(1)
print("holds")
