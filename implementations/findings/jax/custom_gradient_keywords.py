"""The function that custom_gradient returns refuses keyword arguments.

"A Python callable that accepts the same arguments as ``fun``"
(https://docs.jax.dev/en/latest/_autosummary/jax.custom_gradient.html)
"""

import sys

import jax


def fun(x, y):
    return x - y, lambda g: (g, -g)


try:
    found = jax.custom_gradient(fun)(5.0, y=3.0)
except TypeError as refused:
    print(f"f(5., y=3.) raises TypeError: {refused}")
    print(f"it should be {fun(5.0, y=3.0)[0]}")
    sys.exit(1)
print(f"f(5., y=3.) is {found}; holds")
