"""gradcheck in fast mode fails a correct backward if an output marked non-differentiable comes before another.

It should be True, as in slow mode. The documentation says that gradcheck returns "True if all differences
satisfy allclose condition".
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


x = torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True)
slow, fast = (torch.autograd.gradcheck(SignAndTriple.apply, x, fast_mode=f, raise_exception=False) for f in (0, 1))
if not fast:
    print(f"gradcheck of a right backward is {slow}, and in fast mode {fast}, but should be True")
    raise SystemExit(1)
print("holds")
