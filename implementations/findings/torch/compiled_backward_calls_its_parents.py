"""Compiling a Function whose backward calls that of its parent class causes an AssertionError in the compiler.

It should be traced, or run uncompiled. "Use fullgraph=True ...": "Using torch.compile(fullgraph=False) (the default) is
a good way to get started with torch.compile: it supports all Python programs out-of-the-box via the ability to graph
break and gives good performance on common cases."
https://docs.pytorch.org/docs/stable/user_guide/torch_compiler/compile/programming_model.fullgraph_true.html
"""

import torch


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return 2 * x

    @staticmethod
    def backward(ctx, g):
        return 2 * g


class Clipped(Double):
    @staticmethod
    def backward(ctx, g):
        return Double.backward(ctx, g).clamp(-1, 1)


x = torch.ones(2, requires_grad=True)
try:
    got = torch.autograd.grad(torch.compile(lambda x: Clipped.apply(x), backend="eager")(x).sum(), x)[0].tolist()
except (RuntimeError, AssertionError) as error:
    got = f"{type(error).__name__}: {' '.join(str(error).split())[:96]}..."
if got != [1, 1]:
    print(f"the gradient of compiled code is {got}, but should be [1.0, 1.0]")
    raise SystemExit(1)
print("holds")
