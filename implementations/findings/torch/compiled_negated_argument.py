"""Code that inductor compiles reads a tensor that is negated lazily, as z.conj().imag is, with the wrong sign.

Twice the imaginary part of the conjugate of 1 + 2i is -4. "Non-strict Tracing Programming Model": "Given a Python
function, Dynamo Tracing captures a graph of Tensor operations and residual bytecode that when combined give the same
semantics as the Python function."
https://docs.pytorch.org/docs/stable/user_guide/torch_compiler/compile/programming_model.non_strict_tracing_model.html
https://github.com/pytorch/pytorch/issues/145093
"""

import torch


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return 2 * x

    @staticmethod
    def backward(ctx, g):
        return 2 * g


x = torch.tensor([1 + 2j]).conj().imag
compiled = torch.compile(lambda x: Double.apply(x))(x)
if compiled.item() != -4:
    print(f"compiled code gives {compiled.item()}, but should give -4.0, as without torch.compile")
    raise SystemExit(1)
print("holds")
