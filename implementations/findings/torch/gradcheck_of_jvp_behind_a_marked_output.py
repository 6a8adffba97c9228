"""gradcheck with check_forward_ad fails a correct jvp after an output that is marked non-differentiable.

It compares the tangents of one output with the numerical Jacobian of another. It should pass: the documentation of
gradcheck says: "check_forward_ad (bool, optional) - if True, check that the gradients computed with forward mode AD
match the numerical ones."
https://docs.pytorch.org/docs/stable/generated/torch.autograd.gradcheck.gradcheck.html
"""

import torch


class SignAndTriple(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        sign = x.sign()
        ctx.mark_non_differentiable(sign)
        return sign, 3 * x

    @staticmethod
    def backward(ctx, _, g):
        return 3 * g

    @staticmethod
    def jvp(ctx, t):
        return None, 3 * t


x = torch.full((2,), 2.0, dtype=torch.float64, requires_grad=True)
try:
    torch.autograd.gradcheck(SignAndTriple.apply, x, check_forward_ad=True)
except (RuntimeError, IndexError, AssertionError) as error:
    print(f"gradcheck of a right jvp: {' '.join(str(error).split())}, but should be True")
    raise SystemExit(1) from None
print("holds")
