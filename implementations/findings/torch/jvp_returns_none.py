"""A jvp that returns None for a floating output fails an internal assert that asks to report a bug.

None should be accepted. The documentation of Function.jvp says: "If an output is not a Tensor or the function is not
differentiable with respect to that output, you can just pass None as a gradient for that input."
https://docs.pytorch.org/docs/stable/generated/torch.autograd.Function.jvp.html
"""

import torch
import torch.autograd.forward_ad as forward_ad


class DoubleAndSign(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return 2 * x, x.sign()

    @staticmethod
    def jvp(ctx, t):
        return 2 * t, None


with forward_ad.dual_level():
    x = forward_ad.make_dual(torch.ones(2), torch.ones(2))
    try:
        tangent = forward_ad.unpack_dual(DoubleAndSign.apply(x)[0]).tangent
    except RuntimeError as error:
        said = "an internal assert" if "INTERNAL ASSERT" in str(error) else repr(error)
        print(f"a jvp that returns None for sign(x) ends in {said}, but should give the tangents 2 and None or 0")
        raise SystemExit(1) from None
print("holds:", tangent.tolist())
