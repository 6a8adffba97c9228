"""Compiled ahead of time, an output that is a view of another one has no cotangent of its own: wrong gradients.

"Non-strict Tracing Programming Model": "Given a Python function, Dynamo Tracing captures a graph of Tensor operations
and residual bytecode that when combined give the same semantics as the Python function."
https://docs.pytorch.org/docs/stable/user_guide/torch_compiler/compile/programming_model.non_strict_tracing_model.html
"""

import torch


class Whole(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = x.clone()
        return y, y[:1]

    @staticmethod
    def backward(ctx, g, h):
        return 3 * g + 5 * h


def gradient(f):
    x = torch.ones(2, requires_grad=True)
    outputs = f(x)
    return torch.autograd.grad(outputs, x, [torch.ones_like(y) for y in outputs])[0].tolist()


got, expected = gradient(torch.compile(lambda x: Whole.apply(x), backend="aot_eager")), gradient(Whole.apply)
if got != expected:
    print(f"the gradient of compiled code is {got}, but should be {expected}, as without the compiler")
    raise SystemExit(1)
print("holds")
