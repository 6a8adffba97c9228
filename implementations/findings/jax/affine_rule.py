"""A JVP rule that is affine instead of linear is transposed as if it had no constant.

"For automatic transposition to work, the JVP rule's output tangents must be linear as a function of the input tangents.
Otherwise a transposition error is raised." (https://docs.jax.dev/en/latest/301/custom-jvp-vjp.html)
"""

import sys

import jax


@jax.custom_jvp
def f(x):
    return 2 * x


@f.defjvp
def f_jvp(primals, tangents):
    return f(*primals), 2 * tangents[0] + 1.0


print(f"forward mode: {jax.jvp(f, (3.0,), (1.0,))[1]}")
try:
    found = jax.grad(f)(3.0)
except Exception as raised:  # noqa: BLE001 - any error will do
    print(f"reverse mode: {type(raised).__name__}; holds")
    sys.exit(0)
print(f"reverse mode: {found}; it should be an error")
sys.exit(1)
