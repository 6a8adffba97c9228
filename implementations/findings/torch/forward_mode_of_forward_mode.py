"""Forward mode of forward mode through a custom Function gives 0: torch.func.jvp of jvp, and jacfwd of jacfwd.

The same formula with built-in operations is right. "What are composable function transforms?": "These function
transforms can compose with each other arbitrarily."
https://docs.pytorch.org/docs/stable/func.html#what-are-composable-function-transforms
https://github.com/pytorch/pytorch/issues/197867
"""

import torch


class Cube(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x):
        return x * x * x

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_forward(*inputs)

    @staticmethod
    def jvp(ctx, t):
        (x,) = ctx.saved_tensors
        return 3 * x * x * t


def tangent(f):
    return lambda x: torch.func.jvp(f, (x,), (torch.ones_like(x),))[1]


wrong, x = False, torch.tensor(2.0)
for name, transform in (("jvp of jvp", tangent), ("jacfwd of jacfwd", torch.func.jacfwd)):
    if (got := transform(transform(Cube.apply))(x)) != 12:
        print(f"{name} of x ** 3 at 2 is {got}, but should be 12, as with built-in operations")
        wrong = True
if wrong:
    raise SystemExit(1)
print("holds")
