"""forward and backward that lack @staticmethod work through apply as if they were static.

The documentation writes that both are static methods, and the legacy style with methods of an instance is gone; a
class without the decorators should be refused, but no document says that it is.
"""

import torch


class Double(torch.autograd.Function):
    def forward(ctx, x):  # noqa: N805
        return 2 * x

    def backward(ctx, g):  # noqa: N805
        return 2 * g


x = torch.ones(2, requires_grad=True)
try:
    got = torch.autograd.grad(Double.apply(x).sum(), x)[0]
except (TypeError, RuntimeError, ValueError) as error:
    print(f"holds: {error!r}")
else:
    print(f"the gradient is {got.tolist()}, but there should be an error about static methods")
    raise SystemExit(1)
