"""The error for a surplus gradient speaks of an input that is not a tensor; sometimes there is no error.

Which of the two depends on the memory behind a list of flags. Should be: an error with the expected number.
"""

import sys

import mindspore as ms
import numpy as np


class Generous(ms._Function):
    @staticmethod
    def forward(ctx, x):
        return 2 * x

    @staticmethod
    def backward(ctx, g):
        return 2 * g, g


def said():
    try:
        ms.grad(Generous.apply)(ms.Tensor(np.ones(2)))
    except RuntimeError as raised:
        return str(raised).splitlines()[0]
    return "no error"


messages = {said() for _ in range(200)}
print("got:", messages)
print("should be: a wrong number of gradients, 2 instead of 1")
wrong = any("number" not in message for message in messages)
sys.exit(1 if wrong else print("holds"))
