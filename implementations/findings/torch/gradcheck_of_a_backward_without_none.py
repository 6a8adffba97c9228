"""If a backward cannot handle None, gradcheck lets its TypeError through, even with raise_exception=False.

It should be reported as a failed check: GradcheckError, or False. The documentation says: "raise_exception (bool,
optional) - indicating whether to raise an exception if the check fails.", and of check_undefined_grad: "if True,
check if undefined output grads are supported and treated as zeros, for Tensor outputs."
https://docs.pytorch.org/docs/stable/generated/torch.autograd.gradcheck.gradcheck.html
"""

import torch


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        return 2 * x

    @staticmethod
    def backward(ctx, g):
        return g * 2


x = torch.ones(2, dtype=torch.float64, requires_grad=True)
try:
    got = torch.autograd.gradcheck(Double.apply, x, raise_exception=False)
except TypeError as error:
    got = repr(error)
if got is not False:
    print(f"gradcheck with raise_exception=False gives {got}, but should give False")
    raise SystemExit(1)
print("holds")
