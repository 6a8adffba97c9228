"""bwd may return a Python number as the cotangent of a scalar; torch refuses anything but a tensor."""

import sys

import jax

f = jax.custom_vjp(lambda x: 2 * x)
f.defvjp(lambda x: (2 * x, None), lambda _, g: (1.0,))
try:
    found = jax.grad(f)(3.0)
except TypeError as refused:
    print(f"TypeError: {refused}; holds")
    sys.exit(0)
print(f"the gradient is {found!r}; in torch it is an error")
sys.exit(1)
