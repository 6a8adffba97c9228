"""bwd returns nothing for arguments that are not arrays; in torch it returns None for them."""

import sys
from functools import partial

import jax


@partial(jax.custom_vjp, nondiff_argnums=(1,))
def f(x, text):
    return 2 * x


def gradient(*cotangents):
    f.defvjp(lambda x, text: (2 * x, None), lambda text, _, g: cotangents)
    return jax.grad(f)(1.0, "text")


print(f"bwd returns one cotangent for two arguments: the gradient is {gradient(3.0)}")
try:
    print(f"with None for the text: {gradient(3.0, None)}; holds")
except TypeError as refused:
    print(f"with None for the text: TypeError: {refused}")
    sys.exit(1)
