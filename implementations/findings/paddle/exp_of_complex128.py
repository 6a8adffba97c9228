"""The exponential of complex128 has single precision.

"Computes exp of x element-wise with a natural number `e` as the base.
[...] x (Tensor): Input of Exp operator, [...] with data type [...] complex64 or complex128." (paddle.exp)
"""

import cmath
import sys

import paddle

z = 1 + 2j
got = complex(paddle.exp(paddle.to_tensor(z, dtype="complex128")).numpy())
error = abs(got - cmath.exp(z)) / abs(cmath.exp(z))
print(f"relative error {error}, should be at most 1e-15")
if error > 1e-15:
    sys.exit(1)
print("holds")
