"""The gradient of a batched product with an array that has no elements is uninitialized memory.

"Computes the product of the cotangents with the Jacobian of a function fun evaluated at primals." (docstring of
mx.vjp): a sum over no elements is zero.
"""

import sys

import mlx.core as mx

found = []
for _ in range(100):
    # Writes to the memory that is allocated next.
    mx.eval(mx.ones((50,)) * 3)
    primals, cotangent = [mx.zeros((2, 0, 3)), mx.ones((2,))], mx.zeros((2, 0, 3))
    _, (_, gradient) = mx.vjp(mx.vmap(lambda x, y: x * y), primals, [cotangent])
    found.append(gradient.tolist())
wrong = [each for each in found if each != [0.0, 0.0]]
print(f"got: {wrong[0]}; expected: [0.0, 0.0]" if wrong else "holds")
sys.exit(bool(wrong))
