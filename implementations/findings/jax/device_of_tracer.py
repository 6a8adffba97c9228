"""A tracer is a jax.Array without a device; an array has one, and so has a tensor under torch.func."""

import sys

import jax

seen = []
ways = {
    "vmap": lambda f: jax.vmap(f)(jax.numpy.ones(2)),
    "jit": lambda f: jax.jit(f)(1.0),
    "grad": lambda f: jax.grad(f)(1.0),
}


def f(x):
    seen.append((isinstance(x, jax.Array), hasattr(x, "device")))
    return x


for way, transformed in ways.items():
    transformed(f)
    print(f"{way}: whether x is a jax.Array, and has a device: {seen[-1]}; of an array both are True")
sys.exit(0 if all(has for _, has in seen) and not print("holds") else 1)
