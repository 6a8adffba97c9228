"""Compiled ahead of time, an input that is changed in place has zeros for a gradient, where None is right.

The result does not depend on the input, and uncompiled code gives None. The documentation says: "Given a Python
function, Dynamo Tracing captures a graph of Tensor operations and residual bytecode that when combined give the same
semantics as the Python function."
https://docs.pytorch.org/docs/stable/user_guide/torch_compiler/compile/programming_model.non_strict_tracing_model.html
"""

import torch


def call(x, y):
    x.mul_(3)
    return 2 * y


x, y = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
torch.compile(call, backend="aot_eager")(x * 1, y).sum().backward()
if x.grad is not None:
    print(f"the gradient of what has no part in the result is {x.grad.tolist()}, but should be None")
    raise SystemExit(1)
print("holds")
