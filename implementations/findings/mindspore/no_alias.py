"""A class that defines vjp instead of backward cannot be differentiated.

In PyTorch, to which MindSpore's class refers, vjp is another name of backward.
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
print("came:", got, "; should be: [2. 2.]")
sys.exit(1 if isinstance(got, str) else print("holds"))
