"""With generate_vmap_rule, the gradient through an output that all calls share is too large by the batch size.

"Extending torch.func": "If your torch.autograd.Function fulfills the following additional constraints, then we are able
to generate a vmap rule for it." The constraints, that its methods consist of PyTorch operations, are fulfilled here.
https://docs.pytorch.org/docs/stable/notes/extending.func.html#automatically-generate-a-vmap-rule
"""

import torch


class ProductAndTriple(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x, y):
        return x * y, 3 * y

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, g, h):
        x, y = ctx.saved_tensors
        return g * y, g * x + 3 * h


def total(f):
    return lambda y: sum(torch.sum(z) for z in torch.vmap(f, in_dims=(0, None))(torch.tensor([2.0, 3.0, 4.0]), y))


y = torch.tensor(5.0)
got = torch.func.grad(total(ProductAndTriple.apply))(y).item()
expected = torch.func.grad(total(lambda x, y: (x * y, 3 * y)))(y).item()
if got != expected:
    print(f"the gradient of the sum of x * y + 3 * y over x = 2, 3, 4 is {got}, but should be {expected}")
    raise SystemExit(1)
print("holds")
