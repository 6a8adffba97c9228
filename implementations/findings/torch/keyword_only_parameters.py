"""apply cannot call a forward that has keyword-only parameters: TypeError, unexpected keyword argument.

With a setup_context it cannot even if they are left at their defaults. They should reach forward like other arguments.
No document promises it: an explanation of the compiler (graph break GB4372) says that "autograd.Function.apply does
not support keyword-only arguments in forward()."
"""

import torch


class Combined(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, *, scale=3):
        return x * scale


class Separate(torch.autograd.Function):
    @staticmethod
    def forward(x, *, scale=3):
        return x * scale

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass


def refused(function, **given):
    try:
        function.apply(torch.ones(2), **given)
    except TypeError as error:
        print(f"{function.__name__}.apply(x, **{given}) raises {error!r}, but should work")
        return True


if any([refused(Combined, scale=2), refused(Separate, scale=2), refused(Separate)]):
    raise SystemExit(1)
print("holds")
