"""A tangent of another dtype than its output is refused; torch accepts it unchanged."""

import sys

import jax

f = jax.custom_jvp(lambda x: 2 * x)
f.defjvp(lambda primals, tangents: (2 * primals[0], (2 * tangents[0]).astype("float16")))
try:
    found = jax.jvp(f, (jax.numpy.float32(1.0),), (jax.numpy.float32(1.0),))[1]
except TypeError as refused:
    print(f"TypeError: {refused}")
    sys.exit(1)
print(f"the tangent is {found.dtype}; holds")
