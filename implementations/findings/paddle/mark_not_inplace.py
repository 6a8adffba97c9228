"""An input that is marked not in place and returned loses its node in the graph, and the output has none.

"Paddle will help the user create a new Tensor as output. Thereby preventing the auto grad information of the input
Tensor from being overwritten." (paddle.autograd.PyLayerContext.mark_not_inplace)
"""

import sys

import paddle


class Through(paddle.autograd.PyLayer):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_not_inplace(x)
        return x

    @staticmethod
    def backward(ctx, g):
        return 100 * g


x = paddle.to_tensor(1.0, stop_gradient=False)
z = 3 * x
y = Through.apply(z)
of_y = paddle.grad(y, x, retain_graph=True, allow_unused=True)[0]
of_z = paddle.grad(z, x, retain_graph=True, allow_unused=True)[0]
got = [g if g is None else g.item() for g in (of_y, of_z)]
print(f"derivatives of output and input: {got}, should be [300.0, 3.0]")
if got != [300.0, 3.0]:
    sys.exit(1)
print("holds")
