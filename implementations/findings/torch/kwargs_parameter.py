"""A forward with **kwargs cannot be given a keyword argument: apply raises TypeError, unexpected keyword argument.

It should reach forward, like any Python function. The documentation of setup_context prints the signatures
forward(ctx, *args, **kwargs) and forward(*args, **kwargs), but no document says that apply fills **kwargs: a
difference.
https://docs.pytorch.org/docs/stable/generated/torch.autograd.Function.setup_context.html
"""

import torch


class Combined(torch.autograd.Function):
    @staticmethod
    def forward(ctx, *args, **kwargs):
        return args[0] * kwargs["scale"]


class Separate(torch.autograd.Function):
    @staticmethod
    def forward(*args, **kwargs):
        return args[0] * kwargs["scale"]

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass


def refused(function):
    try:
        function.apply(torch.ones(2), scale=2)
    except TypeError as error:
        print(f"{function.__name__}.apply(x, scale=2) raises {error!r}, but should give 2 * x")
        return True


if any([refused(Combined), refused(Separate)]):
    raise SystemExit(1)
print("holds")
