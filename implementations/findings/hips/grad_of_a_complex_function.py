"""grad refuses complex functions, though the tutorial defines it for them.

"We define `grad` of `f` as [...] grad(u, 0)(x, y) - i * grad(u, 1)(x, y) [...] So we throw out v, the imaginary part
of f, entirely. [...] If `f` is holomorphic, we get the usual complex derivative" (docs/tutorial.md, Complex numbers)
"""

import sys

from autograd import grad

try:
    came = grad(lambda z: z * z)(1.0 + 2.0j)
except TypeError as error:
    came = f"TypeError: {error}"
expected = 2.0 + 4.0j
print("got:", came)
print("expected:", expected)
if came != expected:
    sys.exit(1)
print("holds")
