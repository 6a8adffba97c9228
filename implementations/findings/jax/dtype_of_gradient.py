"""The gradient of a float64 argument has the dtype that bwd returned.

"If ``argnums`` is an integer then the gradient has the same shape and type as the positional argument indicated by that
integer." (https://docs.jax.dev/en/latest/_autosummary/jax.grad.html)
"""

import sys

import jax

jax.config.update("jax_enable_x64", True)


@jax.custom_vjp
def f(x):
    return 2 * x


def gradient_of(dtype):
    f.defvjp(lambda x: (2 * x, None), lambda _, g: ((2 * g).astype(dtype),))
    try:
        return str(jax.grad(f)(jax.numpy.float64(1.0)).dtype)
    except (TypeError, ValueError):
        return "an error"


found = {dtype: gradient_of(dtype) for dtype in ("float32", "float16", "complex64")}
for dtype, got in found.items():
    print(f"bwd returns {dtype}: the gradient is {got}, and should be float64, or an error")
if set(found.values()) <= {"float64", "an error"}:
    print("holds")
    sys.exit(0)
sys.exit(1)
