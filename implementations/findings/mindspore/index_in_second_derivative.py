"""A function that indexes with an integer cannot be differentiated twice; afterwards x[0] fails everywhere.

Should be: 2, and 1 afterwards. "Single-level and multi-level `int` index values are supported." (Tensor Index Support)
"""

import sys

import mindspore as ms
import numpy as np

x = ms.Tensor(np.ones(2))


def said(action):
    try:
        return float(action())
    except TypeError as raised:
        return f"TypeError: {str(raised).splitlines()[0]}"


got = [said(lambda: ms.grad(lambda a: ms.grad(lambda b: b[0] * b[0])(a).sum())(x)[0]), said(lambda: x[0])]
print("got:", *got, sep="\n  ")
print("should be: [2.0, 1.0]")
sys.exit(print("holds") if got == [2.0, 1.0] else 1)
