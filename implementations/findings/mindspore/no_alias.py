"""A class that defines vjp instead of backward cannot be differentiated.

MindSpore's class refers to PyTorch's, where vjp is another name of backward.
"""

import sys

import mindspore as ms
import numpy as np


class Double(ms._Function):
    @staticmethod
    def forward(ctx, x):
        return 2 * x

    @staticmethod
    def vjp(ctx, g):
        return 2 * g


try:
    got = ms.grad(Double.apply)(ms.Tensor(np.ones(2))).asnumpy()
except NotImplementedError as raised:
    got = f"NotImplementedError: {raised}"
print("got:", got, "; should be: [2. 2.]")
sys.exit(1 if isinstance(got, str) else print("holds"))
