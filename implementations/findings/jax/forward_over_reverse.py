"""jax.hessian of a custom_vjp function raises TypeError if fwd calls the function, as in the documentation.

"Reverse mode *composes* fine: `jax.grad`-of-`grad`, `jax.hessian`, and forward-over-reverse Hessian-vector products all
work on functions containing `custom_vjp`" (https://docs.jax.dev/en/latest/301/custom-jvp-vjp.html)
"""

import sys

import jax
import numpy as np
from jax import numpy as jnp


@jax.custom_vjp
def f(x):
    return jnp.sin(x)


# Copied from the documentation.
def f_fwd(x):
    return f(x), jnp.cos(x)


def f_bwd(cos_x, y_bar):
    return (cos_x * y_bar,)


f.defvjp(f_fwd, f_bwd)
print(f"grad of grad: {jax.grad(jax.grad(f))(3.0)}, and should be {-np.sin(3.0)}")
try:
    found = jax.hessian(f)(3.0)
except TypeError as refused:
    print(f"hessian: TypeError: {refused}; it should be {-np.sin(3.0)}")
    sys.exit(1)
print(f"hessian: {found}; holds")
