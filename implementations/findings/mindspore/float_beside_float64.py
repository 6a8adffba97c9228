"""A float that meets a float64 tensor is rounded to float32 first.

Should be: 3.14, the float itself.
"""

import sys

import mindspore as ms
import numpy as np

got = float((ms.Tensor(np.ones(1)) * 3.14).asnumpy()[0])
print("came:", got, "; should be: 3.14")
sys.exit(print("holds") if got == 3.14 else 1)
