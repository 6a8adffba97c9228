"""If a function returns one array twice, mx.vjp drops the second of its cotangents.

"Computes the product of the cotangents with the Jacobian of a function fun evaluated at primals." (docstring of mx.vjp)
"""

import sys

import mlx.core as mx


def twice(x):
    y = 2 * x
    return y, y


_, (got,) = mx.vjp(twice, [mx.array(3.0)], [mx.array(1.0), mx.array(10.0)])
expected = 2 * 1.0 + 2 * 10.0
print("holds" if got.item() == expected else f"got: {got.item()}; expected: {expected}")
sys.exit(got.item() != expected)
