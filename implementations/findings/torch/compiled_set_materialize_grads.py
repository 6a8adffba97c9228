"""Compiled code ignores set_materialize_grads(False): backward gets zeros instead of None for an unused output.

"Non-strict Tracing Programming Model": "Given a Python function, Dynamo Tracing captures a graph of Tensor operations
and residual bytecode that when combined give the same semantics as the Python function."
https://docs.pytorch.org/docs/stable/user_guide/torch_compiler/compile/programming_model.non_strict_tracing_model.html
https://github.com/pytorch/pytorch/issues/118396
"""

import torch


class Pair(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        return 2 * x, 3 * x

    @staticmethod
    def backward(ctx, g, h):
        return 2 * g if h is None else 2 * g + 100


def gradient(f):
    x = torch.ones((), requires_grad=True)
    return torch.autograd.grad(f(x), x)[0].item()


got = gradient(torch.compile(lambda x: Pair.apply(x)[0] * 1, backend="eager", fullgraph=True))
expected = gradient(lambda x: Pair.apply(x)[0] * 1)
if got != expected:
    print(f"the gradient of compiled code is {got}, but should be {expected}: backward got no None")
    raise SystemExit(1)
print("holds")
