"""With enable_grad within inference_mode a custom Function is recorded, unlike any other operation.

Its output is an inference tensor that requires grad and has a grad_fn; it should not require grad. "Grad Modes", of
no-grad mode and inference mode: "requires_grad is always overridden to be False in both the two other modes."
https://docs.pytorch.org/docs/stable/notes/autograd.html#grad-modes, https://github.com/pytorch/pytorch/issues/77967
"""

import torch


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return 2 * x

    @staticmethod
    def backward(ctx, g):
        return 2 * g


x = torch.ones(2, requires_grad=True)
with torch.inference_mode(), torch.enable_grad():
    operation, function = 2 * x, Double.apply(x)
if function.requires_grad:
    print(f"requires_grad of an operation's output is {operation.requires_grad}")
    print(f"requires_grad of a Function's output is {function.requires_grad}, but should be False")
    raise SystemExit(1)
print("holds")
