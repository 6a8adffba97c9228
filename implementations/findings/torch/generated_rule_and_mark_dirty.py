"""With generate_vmap_rule, a Function that changes its input in place and marks it dirty raises under vmap.

"Extending torch.func": "If your torch.autograd.Function fulfills the following additional constraints, then we are able
to generate a vmap rule for it." The constraints, that its methods consist of PyTorch operations, are fulfilled here.
https://docs.pytorch.org/docs/stable/notes/extending.func.html#automatically-generate-a-vmap-rule
"""

import torch


class Triple(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x):
        return x.mul_(3)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.mark_dirty(*inputs)

    @staticmethod
    def backward(ctx, g):
        return 3 * g


try:
    got = torch.vmap(lambda x: Triple.apply(x * x))(torch.tensor([1.0, 2.0])).tolist()
except RuntimeError as error:
    print(f"the result should be [3, 12], but vmap raises {error!r}")
    raise SystemExit(1) from None
print(f"holds: {got}")
