"""Forward mode of a function without a rule for it raises TypeError; torch raises NotImplementedError."""

import sys

import jax

f = jax.custom_vjp(lambda x: 2 * x)
f.defvjp(lambda x: (2 * x, None), lambda _, g: (2 * g,))
try:
    jax.jvp(f, (1.0,), (1.0,))
except NotImplementedError as refused:
    print(f"NotImplementedError: {refused}; holds")
except TypeError as refused:
    print(f"TypeError: {refused}")
    sys.exit(1)
