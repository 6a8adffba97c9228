"""A gradient that is an expanded view is summed as if it were contiguous: memory behind it is read.

Should be: twice the cotangent, as for a copy of the view. "Compute the vector-jacobian-product of the given network."
(docstring of mindspore.vjp)
"""

import sys

import mindspore as ms
import numpy as np


def function(copied):
    class Twice(ms._Function):
        @staticmethod
        def forward(ctx, x):
            return 2 * x

        @staticmethod
        def backward(ctx, g):
            expanded = ms.ops.broadcast_to(g, (2, *g.shape))
            return expanded * 1 if copied else expanded

    return Twice.apply


x = ms.Tensor(np.arange(1.0, 7.0).reshape(2, 3))
view, copy = (ms.vjp(function(copied), x)[1](x)[0].asnumpy() for copied in (False, True))
print("got:", view.tolist(), "; should be:", (2 * x).asnumpy().tolist())
sys.exit(print("holds") if np.array_equal(view, copy) else 1)
