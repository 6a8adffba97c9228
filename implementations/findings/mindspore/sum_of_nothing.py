"""A sum or a product of no elements is what the memory held before.

Should be: zeros.
"""

import sys

import mindspore as ms
import numpy as np

ms.runtime.launch_blocking()
empty, found = ms.Tensor(np.zeros((4, 0))), []
for _ in range(100):
    ms.ops.ones((4, 4), ms.float64) * 7  # memory that was used before
    found.append(ms.ops.matmul(empty, empty.T).asnumpy())
wrong = [got for got in found if got.any()]
print("came:", wrong[0] if wrong else found[0], f", {len(wrong)} times of {len(found)} not zeros; should be: zeros")
sys.exit(1 if wrong else print("holds"))
