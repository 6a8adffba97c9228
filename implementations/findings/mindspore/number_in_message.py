"""The error for a wrong number of gradients has no space between the expected number and the next word.

Should be: a number followed by a space.
"""

import re
import sys

import mindspore as ms
import numpy as np


class Short(ms._Function):
    @staticmethod
    def forward(ctx, x, y):
        return x * y

    @staticmethod
    def backward(ctx, g):
        return g


x = ms.Tensor(np.ones(2))
try:
    ms.grad(Short.apply)(x, x)
    message = "no error"
except RuntimeError as raised:
    message = str(raised).splitlines()[0]
print("got:", message)
print("should be: a message with the words 2 and 1")
sys.exit(print("holds") if re.search(r"\b2\b.*\b1\b", message) else 1)
