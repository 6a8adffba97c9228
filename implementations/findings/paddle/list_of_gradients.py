"""A backward that returns a list of tensors raises ValueError.

"The output of ``backward`` can be ``Tensor`` or ``list/tuple(Tensor)``" (paddle.autograd.PyLayer, rule 3)
"""

import sys

import paddle


class Sum(paddle.autograd.PyLayer):
    @staticmethod
    def forward(ctx, x, y):
        return x + y

    @staticmethod
    def backward(ctx, g):
        return [g, g]


x, y = (paddle.to_tensor(1.0, stop_gradient=False) for _ in range(2))
try:
    got = [g.item() for g in paddle.grad(Sum.apply(x, y), [x, y])]
except ValueError as error:
    print("should be [1.0, 1.0], but is", error)
    sys.exit(1)
print("holds:", got)
