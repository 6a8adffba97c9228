"""If an output before a differentiable one is marked non-differentiable, the pass ends with an internal error.

Should be: a gradient of the other output, as in PyTorch. The docstring of mindspore._Function says that it is modelled
on PyTorch's, which is no promise: a difference.
"""

import sys

import mindspore as ms
import numpy as np


class Both(ms._Function):
    @staticmethod
    def forward(ctx, x):
        marked, y = x + 1, 2 * x
        ctx.mark_non_differentiable(marked)
        return marked, y

    @staticmethod
    def backward(ctx, _, g):
        return 2 * g


try:
    got = ms.grad(lambda x: Both.apply(x)[1])(ms.Tensor(np.ones(2))).asnumpy().tolist()
except RuntimeError as raised:
    got = f"RuntimeError: {str(raised).splitlines()[0]}"
print("got:", got, "; should be: [2.0, 2.0]")
sys.exit(print("holds") if got == [2.0, 2.0] else 1)
