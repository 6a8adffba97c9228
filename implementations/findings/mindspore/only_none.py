"""If backward returns None for all inputs, backward of the Functions before it does not run.

PyTorch runs them, with zeros or None as set_materialize_grads says.
"""

import sys

import mindspore as ms
import numpy as np

ran = []


class Inner(ms._Function):
    @staticmethod
    def forward(ctx, x):
        return 2 * x

    @staticmethod
    def backward(ctx, g):
        ran.append(g)
        return 2 * g


class Outer(ms._Function):
    @staticmethod
    def forward(ctx, x):
        return 2 * x

    @staticmethod
    def backward(ctx, g):
        return None


ms.grad(lambda x: Outer.apply(Inner.apply(x)))(ms.Tensor(np.ones(2)))
print("got:", len(ran), "calls of backward; should be: 1")
sys.exit(1 if len(ran) != 1 else print("holds"))
