"""save_for_backward accepts non-tensors, and set_materialize_grads of a non-bool raises RuntimeError after forward.

PyTorch raises TypeError for both, at the call.
"""

import sys

import mindspore as ms
import numpy as np


def raised_by(misuse):
    class Double(ms._Function):
        @staticmethod
        def forward(ctx, x):
            misuse(ctx)
            return 2 * x

        @staticmethod
        def backward(ctx, g):
            return 2 * g

    try:
        ms.grad(Double.apply)(ms.Tensor(np.ones(2)))
    except (RuntimeError, TypeError) as raised:
        return type(raised).__name__
    return "no error"


got = [raised_by(lambda ctx: ctx.save_for_backward("text")), raised_by(lambda ctx: ctx.set_materialize_grads(1.5))]
print("got:", got, "; should be: TypeError twice")
sys.exit(print("holds") if got == ["TypeError"] * 2 else 1)
