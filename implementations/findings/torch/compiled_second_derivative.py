"""With backend "eager" a compiled Function silently has no second derivative.

There should be that of uncompiled code, or an error, as with backends that compile ahead of time. "Dynamo Tracing
captures a graph of Tensor operations and residual bytecode that when combined give the same semantics as the Python
function." The page on how autograd's semantics differ under torch.compile does not mention second derivatives.
https://docs.pytorch.org/docs/stable/user_guide/torch_compiler/compile/programming_model.non_strict_tracing_model.html
https://docs.pytorch.org/docs/stable/user_guide/torch_compiler/torch.compiler_backward.html
"""

import torch


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        return 2 * ctx.saved_tensors[0] * g


seconds = []
for call in (Square.apply, torch.compile(lambda x: Square.apply(x), backend="eager")):
    x = torch.full((), 3.0, requires_grad=True)
    (first,) = torch.autograd.grad(call(x) + x**3, x, create_graph=True)
    try:
        seconds.append(torch.autograd.grad(first, x)[0].item())
    except RuntimeError as error:
        print(f"holds: {error!r}")
        raise SystemExit(0) from None
if seconds[1] != seconds[0]:
    print(f"the second derivative of x ** 2 + x ** 3 at 3 is {seconds[1]}, but should be {seconds[0]} or an error")
    raise SystemExit(1)
print("holds")
