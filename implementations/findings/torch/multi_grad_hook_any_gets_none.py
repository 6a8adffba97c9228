"""A multi-grad hook in mode "any" is called with None for an unused output, instead of with the gradient.

It should get the gradient of the other output. The documentation of register_multi_grad_hook says: "Under the "any"
mode, the hook will be called after the first gradient with respect to a tensor in tensors has been computed. The hook
will be called with that gradient as its argument."
https://docs.pytorch.org/docs/stable/autograd.html#torch.autograd.graph.register_multi_grad_hook
"""

import torch


class Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return 2 * x, 3 * x

    @staticmethod
    def backward(ctx, g, h):
        return 2 * g + 3 * h


outputs = Twice.apply(torch.ones((), requires_grad=True))
seen = []
torch.autograd.graph.register_multi_grad_hook(outputs, seen.append, mode="any")
(5 * outputs[1]).backward()
if seen != [torch.tensor(5.0)]:
    print(f"the hook is called with {seen}, but should be called with [tensor(5.)]")
    raise SystemExit(1)
print("holds")
