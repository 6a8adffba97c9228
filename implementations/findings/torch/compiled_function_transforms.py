"""Compiled torch.func.grad and jvp drop a Function's own backward and jvp, and differentiate forward's operations.

"Non-strict Tracing Programming Model": "Given a Python function, Dynamo Tracing captures a graph of Tensor operations
and residual bytecode that when combined give the same semantics as the Python function."
https://docs.pytorch.org/docs/stable/user_guide/torch_compiler/compile/programming_model.non_strict_tracing_model.html
https://github.com/pytorch/pytorch/issues/193279, https://github.com/pytorch/pytorch/issues/192985
"""

import torch


class Double(torch.autograd.Function):
    @staticmethod
    def forward(x):
        return 2 * x

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def backward(ctx, g):
        return 7 * g

    jvp = backward


def tangent(x):
    return torch.func.jvp(Double.apply, (x,), (torch.ones_like(x),))[1]


wrong, x = False, torch.tensor(1.0)
for name, f in (("func.grad", torch.func.grad(Double.apply)), ("func.jvp", tangent)):
    got = torch.compile(f, backend="eager", fullgraph=True)(x).item()
    if got != f(x):
        print(f"{name} in compiled code gives {got}, but should give {f(x)}, as without the compiler")
        wrong = True
if wrong:
    raise SystemExit(1)
print("holds")
