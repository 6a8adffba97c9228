"""The error for a gradient of a wrong shape does not name its position.

Should be: its position, 1.
"""

import re
import sys

import mindspore as ms
import numpy as np


class Wrong(ms._Function):
    @staticmethod
    def forward(ctx, x, y):
        return x * y

    @staticmethod
    def backward(ctx, g):
        return g, g.sum()


x = ms.Tensor(np.ones(3))
try:
    ms.grad(Wrong.apply)(x, x)
    message = "no error"
except RuntimeError as raised:
    message = str(raised).splitlines()[0]
print("got:", message)
print("should be: a message with the word 1")
sys.exit(print("holds") if re.search(r"\b1\b", message) else 1)
