"""A Python float in an operation with a float64 tensor is first rounded to float32.

Should be: 3.14, the float itself.
"""

import sys

import mindspore as ms
import numpy as np

got = float((ms.Tensor(np.ones(1)) * 3.14).asnumpy()[0])
print("got:", got, "; should be: 3.14")
sys.exit(print("holds") if got == 3.14 else 1)
