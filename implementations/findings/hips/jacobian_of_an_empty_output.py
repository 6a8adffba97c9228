"""The Jacobian of a function with an empty output is a ValueError.

"If the input to `fun` has shape (in1, in2, ...) and the output has shape (out1, out2, ...) then the Jacobian has shape
(out1, out2, ..., in1, in2, ...)." (autograd.jacobian, docstring)
"""

import sys

import numpy as np
from autograd import jacobian

try:
    came = jacobian(lambda x: 2.0 * x[:0])(np.ones(3)).shape
except ValueError as error:
    came = f"ValueError: {error}"
expected = (0, 3)
print("got:", came)
print("expected:", expected)
if came != expected:
    sys.exit(1)
print("holds")
