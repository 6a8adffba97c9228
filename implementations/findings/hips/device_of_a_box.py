"""A traced array has no `device`, which NumPy's arrays have from 2.0 on.

A difference and no broken promise: the tutorial speaks of most of numpy.ndarray's methods.
"""

import sys

import numpy as np
from autograd import make_vjp


def f(x):
    print("came:", getattr(x, "device", "no attribute"))
    found.append(hasattr(x, "device"))
    return x


found = []
make_vjp(f)(np.ones(2))
print("should have come:", np.ones(2).device)
if not all(found):
    sys.exit(1)
print("holds")
