"""After a second call of mindspore.vjp the function from the first call fails.

Should be: "vjp_fn (Function) - To calculate vector-jacobian-product." (docstring of mindspore.vjp)
"""

import sys

import mindspore as ms
import numpy as np

x = ms.Tensor(np.ones(2))
_, square = ms.vjp(lambda a: a * a, x)
_, cube = ms.vjp(lambda a: a * a * a, x)
try:
    got = [square(x)[0].asnumpy().tolist(), cube(x)[0].asnumpy().tolist()]
except RuntimeError as raised:
    got = f"RuntimeError: {str(raised).splitlines()[0]}"
print("got:", got, "; should be: [[2.0, 2.0], [3.0, 3.0]]")
sys.exit(print("holds") if got == [[2.0, 2.0], [3.0, 3.0]] else 1)
