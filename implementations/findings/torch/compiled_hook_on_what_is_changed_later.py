"""Compiled ahead of time, a hook on an input is lost if the input is changed in place later.

The gradient is silently the one without the hook. The documentation says: "Given a Python function, Dynamo Tracing
captures a graph of Tensor operations and residual bytecode that when combined give the same semantics as the Python
function."
https://docs.pytorch.org/docs/stable/user_guide/torch_compiler/compile/programming_model.non_strict_tracing_model.html
"""

import torch


def call(x):
    x.register_hook(lambda g: 10 * g)
    x.mul_(3)
    return x * 1


gradients = []
for function in (call, torch.compile(call, backend="aot_eager")):
    leaf = torch.ones(2, requires_grad=True)
    function(leaf * 1).sum().backward()
    gradients.append(leaf.grad.tolist())
if gradients[1] != gradients[0]:
    print(f"the gradient of compiled code is {gradients[1]}, but should be {gradients[0]}")
    raise SystemExit(1)
print("holds")
