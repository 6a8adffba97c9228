"""Compiled ahead of time, a Function that marks an argument dirty has silently wrong gradients.

They are those of a Function that changes nothing, and should be those of uncompiled code. The compiler's explanation
of graph break GB0139 says: "Supported methods are `__setattr__`, `save_for_backward`, `mark_dirty` and
`mark_non_differentiable`."
https://meta-pytorch.org/compile-graph-break-site/gb/gb0139.html
"""

import torch


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        x.mul_(2)
        ctx.mark_dirty(x)
        return x

    @staticmethod
    def backward(ctx, g):
        return 2 * g


gradients = []
for call in (Double.apply, torch.compile(lambda x: Double.apply(x), backend="aot_eager")):
    leaf = torch.ones(2, requires_grad=True)
    x = leaf * 3
    call(x)
    gradients.append(torch.autograd.grad(x.sum(), leaf)[0].tolist())
if gradients[1] != gradients[0]:
    print(f"the gradient of compiled code is {gradients[1]}, but should be {gradients[0]}")
    raise SystemExit(1)
print("holds")
