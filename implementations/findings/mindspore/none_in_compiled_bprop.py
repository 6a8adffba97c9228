"""A compiled cell whose bprop returns None for an input raises RuntimeError if its gradient is requested.

Should be: zeros for that input, as without ms.jit.
"""

import sys

import mindspore as ms
import numpy as np


class Product(ms.nn.Cell):
    def construct(self, x, y):
        return x * y

    def bprop(self, x, y, out, dout):
        return y * dout, None


cell = Product()


@ms.jit
def compiled(x, y):
    return cell(x, y)


def said(f):
    try:
        return [g.asnumpy().tolist() for g in ms.grad(f, (0, 1))(ms.Tensor(np.ones(1)), ms.Tensor(np.ones(1)))]
    except RuntimeError as raised:
        return f"RuntimeError: {str(raised).splitlines()[0]}"


got = said(compiled)
print("got:", got, "; should be:", said(cell))
sys.exit(print("holds") if got == said(cell) else 1)
