"""defjvps with None for every argument makes a function that cannot be differentiated.

"As a shorthand, with `defjvps` you can pass a `None` value to indicate that the JVP for a particular argument is zero"
(https://docs.jax.dev/en/latest/301/custom-jvp-vjp.html)
"""

import sys

import jax


@jax.custom_jvp
def f(x, y):
    return x**2 * y


f.defjvps(None, None)
try:
    found = jax.jvp(f, (2.0, 3.0), (1.0, 1.0))[1]
except TypeError as refused:
    print(f"TypeError: {refused}; the tangent should be 0.0")
    sys.exit(1)
print(f"the tangent is {found}, and should be 0.0{'; holds' if found == 0 else ''}")
sys.exit(bool(found != 0))
