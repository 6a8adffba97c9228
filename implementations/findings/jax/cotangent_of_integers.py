"""The cotangent of an integer output has dtype float0; torch materializes zeros of the output's dtype."""

import sys

import jax
from jax import numpy as jnp

seen = []
f = jax.custom_vjp(lambda x: (2 * x, jnp.int32(3)))


def bwd(_, cotangents):
    seen.append(str(cotangents[1].dtype))
    return (2 * cotangents[0],)


f.defvjp(lambda x: ((2 * x, jnp.int32(3)), None), bwd)
jax.grad(lambda x: f(x)[0])(1.0)
print(f"the cotangent of an int32 output is {seen[0]}; in torch it would be int32")
sys.exit(0 if seen == ["int32"] and not print("holds") else 1)
