"""A tangent for an output under stop_gradient is dropped; torch refuses one for an output marked non-differentiable."""

import sys

import jax

f = jax.custom_jvp(lambda x: 2 * x)
f.defjvp(lambda primals, tangents: (2 * primals[0], 7 * tangents[0]))
try:
    found = jax.jvp(lambda x: jax.lax.stop_gradient(f(x)), (1.0,), (1.0,))[1]
except Exception as raised:  # noqa: BLE001 - any error will do
    print(f"{type(raised).__name__}; holds")
    sys.exit(0)
print(f"the rule's tangent is 7.0, and what comes of it {found}; in torch it is an error")
sys.exit(1)
