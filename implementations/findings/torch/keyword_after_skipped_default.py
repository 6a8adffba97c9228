"""If forward takes ctx, a keyword after a parameter that is left at its default is a TypeError.

forward should be called with the default, like any Python function, and as it is if there is a setup_context. No
document says how apply treats keywords.
"""

import torch


class Affine(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale=2, shift=1):
        return x * scale + shift


try:
    y = Affine.apply(torch.ones(2), shift=5).tolist()
except TypeError as error:
    y = repr(error)
if y != [7, 7]:
    print(f"apply(x, shift=5) gives {y}, but should give [7, 7]")
    raise SystemExit(1)
print("holds")
