"""A compiled vmap drops a Function's own backward: the gradient is that of forward's operations.

"Non-strict Tracing Programming Model": "Given a Python function, Dynamo Tracing captures a graph of Tensor operations
and residual bytecode that when combined give the same semantics as the Python function."
https://docs.pytorch.org/docs/stable/user_guide/torch_compiler/compile/programming_model.non_strict_tracing_model.html
https://github.com/pytorch/pytorch/pull/186366
"""

import torch


class Double(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x):
        return 2 * x

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def backward(ctx, g):
        return 7 * g


def mapped(x):
    return torch.vmap(Double.apply)(x)


gradients = []
for f in (mapped, torch.compile(mapped, backend="eager")):
    x = torch.ones(2, requires_grad=True)
    gradients.append(torch.autograd.grad(torch.sum(f(x)), x)[0].tolist())
if gradients[1] != gradients[0]:
    print(f"the gradient of a compiled vmap is {gradients[1]}, but should be {gradients[0]}")
    raise SystemExit(1)
print("holds")
