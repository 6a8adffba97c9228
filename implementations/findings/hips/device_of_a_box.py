"""A traced array has no `device`; NumPy's arrays have one since 2.0.

A difference and no broken promise: the tutorial speaks of most of numpy.ndarray's methods.
"""

import sys

import numpy as np
from autograd import make_vjp


def f(x):
    print("got:", getattr(x, "device", "no attribute"))
    found.append(hasattr(x, "device"))
    return x


found = []
make_vjp(f)(np.ones(2))
print("expected:", np.ones(2).device)
if not all(found):
    sys.exit(1)
print("holds")
