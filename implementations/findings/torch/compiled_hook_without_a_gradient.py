"""Compiled ahead of time, a hook on an input gets None if the result does not depend on the input.

Uncompiled code does not call the hook. The documentation says: "Given a Python function, Dynamo Tracing captures a
graph of Tensor operations and residual bytecode that when combined give the same semantics as the Python function."
https://docs.pytorch.org/docs/stable/user_guide/torch_compiler/compile/programming_model.non_strict_tracing_model.html
"""

import torch


def call(x, y):
    y.register_hook(lambda g: got.append(g))
    _ = x * y
    return 2 * x


got = []
x, y = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
torch.compile(call, backend="aot_eager")(x, y).sum().backward()
if got:
    print(f"the hook was called with {got[0]}, but should not be called")
    raise SystemExit(1)
print("holds")
