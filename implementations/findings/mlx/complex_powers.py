"""The gradient of a complex power lacks the conjugation that the gradients of other operations have.

z ** 2 and z * z are the same function, and their gradients differ: whichever convention holds, one is wrong. "Computes
the product of the cotangents with the Jacobian of a function fun evaluated at primals." (mx.vjp)
"""

import sys

import mlx.core as mx

z, g = mx.array(1 + 2j), mx.array(1 + 0j)
_, (power,) = mx.vjp(lambda z: z**2, [z], [g])
_, (product,) = mx.vjp(lambda z: z * z, [z], [g])
right = abs(power.item() - product.item()) < 1e-3
print("holds" if right else f"got: {power.item()} for z ** 2; expected: {product.item()}, as for z * z")
sys.exit(not right)
