"""Compiled ahead of time, code may save its input in place of the output that a Function saves.

A change of the input before backward is then an error, where uncompiled code is right. The documentation says: "Given
a Python function, Dynamo Tracing captures a graph of Tensor operations and residual bytecode that when combined give
the same semantics as the Python function."
https://docs.pytorch.org/docs/stable/user_guide/torch_compiler/compile/programming_model.non_strict_tracing_model.html
"""

import torch


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = x * x
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return 2 * y.sqrt() * g


leaf = torch.ones(2, requires_grad=True)
x = leaf * 3
y = torch.compile(lambda x: Square.apply(x) * 1, backend="aot_eager")(x)
with torch.no_grad():
    x.add_(1)
try:
    y.sum().backward()
except RuntimeError as raised:
    print(f"backward raised {str(raised).splitlines()[0]}")
    raise SystemExit(1) from None
print("holds")
