"""paddle.grad for one of two inputs of a PyLayer raises ValueError if backward returns both gradients.

"If a returned value in ``backward`` corresponds to a ``Tensor`` that requires gradients in ``forward``, the returned
value must be a ``Tensor``." (paddle.autograd.PyLayer, rule 1)
"""

import sys

import paddle


class Product(paddle.autograd.PyLayer):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x * y

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensor()
        return g * y, g * x


x = paddle.to_tensor(3.0, stop_gradient=False)
y = paddle.to_tensor(4.0, stop_gradient=False)
try:
    got = paddle.grad(Product.apply(x, y), x)[0].item()
except ValueError as error:
    print("should be 4.0, but is", error)
    sys.exit(1)
print("holds:", got)
