"""multigrad_dict imports funcsigs, which autograd does not require.

"Takes gradients wrt all arguments simultaneously," (autograd/differential_operators.py, multigrad_dict)
"""

import sys

from autograd import multigrad_dict

try:
    came = dict(multigrad_dict(lambda a, b: 2.0 * a + 3.0 * b)(1.0, 1.0))
except ModuleNotFoundError as error:
    came = f"{type(error).__name__}: {error}"
expected = {"a": 2.0, "b": 3.0}
print("got:", came)
print("expected:", expected)
if came != expected:
    sys.exit(1)
print("holds")
