"""With generate_vmap_rule, saving for jvp in another order than for backward gives silently wrong gradients.

"Extending torch.func": "If your torch.autograd.Function fulfills the following additional constraints, then we are able
to generate a vmap rule for it." The constraints, that its methods consist of PyTorch operations, are fulfilled here.
https://docs.pytorch.org/docs/stable/notes/extending.func.html#automatically-generate-a-vmap-rule
"""

import torch


class Product(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x, y):
        return x * y

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, y = inputs
        ctx.save_for_backward(x, y)
        ctx.save_for_forward(y, x)

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return g * y, g * x


xs, y = torch.tensor([[2.0, 3.0], [4.0, 5.0]]), torch.tensor([7.0, 11.0])
mapped = torch.vmap(Product.apply, in_dims=(0, None))
got = torch.func.grad(lambda xs: torch.sum(mapped(xs, y)))(xs).tolist()
if got != [[7, 11], [7, 11]]:
    print(f"the gradient of the sum of x * [7, 11] for two x is {got}, but should be [[7, 11], [7, 11]]")
    raise SystemExit(1)
print("holds")
