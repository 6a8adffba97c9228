"""The result of a hook on an output of a PyLayer is dropped.

"it can optionally return a new gradient Tensor which will be used in place of current Tensor's gradient"
(Tensor.register_hook)
"""

import sys

import paddle


class Double(paddle.autograd.PyLayer):
    @staticmethod
    def forward(ctx, x):
        return 2 * x

    @staticmethod
    def backward(ctx, g):
        return 2 * g


wrong = False
for name, f in (("PyLayer", Double.apply), ("built-in", lambda x: 2 * x)):
    x = paddle.to_tensor(1.0, stop_gradient=False)
    y = f(x)
    y.register_hook(lambda g: 10 * g)
    got = paddle.grad(3 * y, x)[0].item()
    wrong |= got != 60.0
    print(f"{name}: {got}, should be 60.0")
print("" if wrong else "holds")
sys.exit(wrong)
