"""gradcheck with check_grad_dtypes passes a backward that returns float32 for an input of float64.

The engine has cast the gradient before gradcheck sees it. It should fail; the documentation lists the argument
without explaining it.
"""

import torch


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return 2 * x

    @staticmethod
    def backward(ctx, g):
        return (2 * g).float()


x = torch.ones(2, dtype=torch.float64, requires_grad=True)
got = torch.autograd.gradcheck(Double.apply, x, check_grad_dtypes=True, raise_exception=False)
if got:
    print(f"gradcheck of a backward that returns float32 for float64 is {got}, but should be False")
    raise SystemExit(1)
print("holds")
