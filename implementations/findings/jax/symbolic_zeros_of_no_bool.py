"""symbolic_zeros accepts values that are not bools; torch's set_materialize_grads raises TypeError."""

import sys

import jax

f = jax.custom_vjp(lambda x: 2 * x)
try:
    f.defvjp(lambda x: (2 * x, None), lambda _, g: (2 * g,), symbolic_zeros="no")
except TypeError as refused:
    print(f"TypeError: {refused}; holds")
    sys.exit(0)
print(f"symbolic_zeros is {f.symbolic_zeros!r}; in torch it is an error")
sys.exit(1)
