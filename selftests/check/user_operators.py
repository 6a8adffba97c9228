"""Operators, layers and other callables of users, as `check` is given them."""

from __future__ import annotations

import torch


def _saved(ctx, inputs, output):  # noqa: ARG001
    ctx.save_for_backward(*inputs)


@torch.library.custom_op("conformance_mine::cube", mutates_args=())
def cube(x: torch.Tensor) -> torch.Tensor:
    return x**3


@torch.library.custom_op("conformance_mine::wrong_cube", mutates_args=())
def wrong_cube(x: torch.Tensor) -> torch.Tensor:
    return x**3


cube.register_autograd(lambda ctx, g: g * 3 * ctx.saved_tensors[0] ** 2, setup_context=_saved)
wrong_cube.register_autograd(lambda ctx, g: g * 2 * ctx.saved_tensors[0] ** 2, setup_context=_saved)

_LIBRARY = torch.library.Library("conformance_mine", "FRAGMENT")
_LIBRARY.define("scaled.whole(Tensor x, int k) -> Tensor")
_LIBRARY.impl("scaled.whole", lambda x, k: x * k, "CompositeImplicitAutograd")

_LIBRARY.define("powered(Tensor x, *, int k=2) -> Tensor")
_LIBRARY.impl("powered", lambda x, *, k=2: x**k, "CompositeImplicitAutograd")

packet = torch.ops.conformance_mine.scaled
overload = torch.ops.conformance_mine.scaled.whole
nameless = lambda x: x * x  # noqa: E731


class _WrongGrad(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x * w

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        return 2 * g * w, g * x


class Layer(torch.nn.Module):
    """A layer in single precision, whose input's gradient may be wrong."""

    def __init__(self, operation):
        super().__init__()
        self.w = torch.nn.Parameter(torch.tensor([1.0, 2.0, 3.0]))
        self.operation = operation

    def forward(self, x):
        return self.operation(x, self.w)

    def twice(self, x):
        return 2 * self(x)


right_layer = Layer(torch.mul)
wrong_layer = Layer(_WrongGrad.apply)
bound, wrong_bound = right_layer.twice, wrong_layer.twice
