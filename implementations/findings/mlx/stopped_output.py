"""mx.vjp gives the cotangent of an output from mx.stop_gradient to the next output.

"Computes the product of the cotangents with the Jacobian of a function fun evaluated at primals. [...] The cotangents
should be the same in number, shape, and type as the outputs of fun." (docstring of mx.vjp)
"""

import sys

import mlx.core as mx


def f(x):
    return mx.stop_gradient(5 * x), 2 * x


_, (got,) = mx.vjp(f, [mx.array(3.0)], [mx.array(10.0), mx.array(1.0)])
expected = 0 * 10.0 + 2 * 1.0
print("holds" if got.item() == expected else f"got: {got.item()}; expected: {expected}")
sys.exit(got.item() != expected)
