"""The second derivative is wrong if several outputs of one node are their own grad_outputs.

"create_graph: ... When it is True, higher order derivatives are supported to compute" (paddle.grad)
"""

import sys

import paddle


class Two(paddle.autograd.PyLayer):
    @staticmethod
    def forward(ctx, x):
        return 2 * x, 3 * x

    @staticmethod
    def backward(ctx, g, h):
        return 2 * g + 3 * h


def unbound(x):
    return paddle.unbind(paddle.to_tensor([2.0, 3.0]) * x)


wrong = False
for name, f in (("PyLayer", Two.apply), ("paddle.unbind", unbound)):
    x = paddle.to_tensor(1.0, stop_gradient=False)
    a, b = f(x)
    (gradient,) = paddle.grad([a, b], x, [a, b], create_graph=True)  # 13 x
    got = paddle.grad(gradient, x)[0].item()
    wrong |= got != 13.0
    print(f"{name}: {got}, should be 13.0")
print("" if wrong else "holds")
sys.exit(wrong)
