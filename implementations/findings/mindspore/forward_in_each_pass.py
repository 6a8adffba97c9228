"""The function that mindspore.vjp returns runs forward again for a second vector, with another ctx.

PyTorch runs it once: what backward stores on ctx in one pass is there in the next.
"""

import sys
import warnings

import mindspore as ms
import numpy as np

warnings.simplefilter("ignore")
contexts = []


class Double(ms._Function):
    @staticmethod
    def forward(ctx, x):
        return 2 * x

    @staticmethod
    def backward(ctx, g):
        contexts.append(ctx)
        return 2 * g


_, pullback = ms.vjp(Double.apply, ms.Tensor(np.ones(2)))
for _ in range(2):
    pullback(ms.Tensor(np.ones(2)))
same = contexts[0] is contexts[1]
print("got:", "one ctx" if same else "another ctx in each pass", "; should be: one ctx")
sys.exit(print("holds") if same else 1)
