"""Compiled code drops a Function's own jvp if no argument requires grad: tangents are those of forward's operations.

They should be those of jvp. "Non-strict Tracing Programming Model": "Given a Python function, Dynamo Tracing captures
a graph of Tensor operations and residual bytecode that when combined give the same semantics as the Python function."
https://docs.pytorch.org/docs/stable/user_guide/torch_compiler/compile/programming_model.non_strict_tracing_model.html
https://github.com/pytorch/pytorch/issues/192985
"""

import torch
import torch.autograd.forward_ad as forward_ad


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return 2 * x

    @staticmethod
    def jvp(ctx, t):
        return 7 * t


tangents = []
for call in (Double.apply, torch.compile(lambda x: Double.apply(x), backend="eager")):
    with forward_ad.dual_level():
        x = forward_ad.make_dual(torch.ones(2), torch.ones(2))
        tangents.append(forward_ad.unpack_dual(call(x)).tangent.tolist())
if tangents[1] != tangents[0]:
    print(f"the tangent of compiled code is {tangents[1]}, but should be {tangents[0]}")
    raise SystemExit(1)
print("holds")
