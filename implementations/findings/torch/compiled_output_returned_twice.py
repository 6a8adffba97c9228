"""Compiling a Function that returns one tensor for two outputs fails an assertion in the compiler.

"fullgraph=False": "Using torch.compile(fullgraph=False) (the default) is a good way to get started with torch.compile:
it supports all Python programs out-of-the-box via the ability to graph break and gives good performance on common
cases."
https://docs.pytorch.org/docs/stable/user_guide/torch_compiler/compile/programming_model.fullgraph_true.html
"""

import torch


class Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = 2 * x
        return y, y

    @staticmethod
    def backward(ctx, g, h):
        return 2 * g + 2 * h


x = torch.ones((), requires_grad=True)
try:
    outputs = torch.compile(lambda x: Twice.apply(x), backend="eager")(x)
except AssertionError as error:
    print(f"the outputs should be {[y.item() for y in Twice.apply(x)]}, but compiling raises {error!r}")
    raise SystemExit(1) from None
print(f"holds: {[y.item() for y in outputs]}")
