"""With generate_vmap_rule, mark_non_differentiable is ignored: the output requires grad, and torch.func.jvp raises.

"Extending torch.func": "If your torch.autograd.Function fulfills the following additional constraints, then we are able
to generate a vmap rule for it." The constraints, that its methods consist of PyTorch operations, are fulfilled here.
https://docs.pytorch.org/docs/stable/notes/extending.func.html#automatically-generate-a-vmap-rule
"""

import torch


class SignAndTriple(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x):
        return torch.sign(x), 3 * x

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.mark_non_differentiable(output[0])

    @staticmethod
    def jvp(ctx, t):
        return None, 3 * t


x, wrong = torch.ones(2), False
sign, _ = torch.vmap(SignAndTriple.apply)(x.clone().requires_grad_())
if sign.requires_grad:
    print("the marked output requires grad, but should not")
    wrong = True
try:
    torch.func.jvp(torch.vmap(SignAndTriple.apply), (x,), (x,))
except RuntimeError as error:
    print(f"jvp should give a tangent of zeros for it, but raises {error!r}")
    wrong = True
if wrong:
    raise SystemExit(1)
print("holds")
