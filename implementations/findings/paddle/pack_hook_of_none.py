"""The documented pack_hook raises an error if a PyLayer saves None: it is called with None.

"The input of `pack_hook` is a tensor need be saved." (paddle.autograd.saved_tensors_hooks)
"""

import sys

import paddle


class Double(paddle.autograd.PyLayer):
    @staticmethod
    def forward(ctx, x, bias=None):
        ctx.save_for_backward(x, bias)
        return 2 * x

    @staticmethod
    def backward(ctx, g):
        return 2 * g


x = paddle.to_tensor(1.0, stop_gradient=False)
seen = []
with paddle.autograd.saved_tensors_hooks(lambda t: seen.append(t), lambda t: t):
    Double.apply(x)
print("pack_hook was called with", seen)
if None in seen:
    print("should be tensors only")
    sys.exit(1)
print("holds")
