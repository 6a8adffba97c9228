"""Messages about a wrong number of cotangents or tangents show two structures; torch's show the two numbers."""

import sys

import jax


def message(action):
    try:
        action()
    except TypeError as raised:
        return str(raised)
    return "no error"


def reverse(count):
    f = jax.custom_vjp(lambda x, y: x * y)
    f.defvjp(lambda x, y: (x * y, None), lambda _, g: (g,) * count)
    return message(lambda: jax.grad(f)(1.0, 2.0))


def forward(count):
    f = jax.custom_jvp(lambda x: (x, x))
    f.defjvp(lambda primals, tangents: (primals * 2, tangents * count))
    return message(lambda: jax.jvp(f, (1.0,), (1.0,)))


found = {"3 cotangents for 2 arguments": (reverse(3), "23"), "3 tangents for 2 outputs": (forward(3), "23")}
for what, (text, _) in found.items():
    print(f"{what}: {text}")
wrong = [what for what, (text, numbers) in found.items() if not all(n in text for n in numbers)]
sys.exit(1 if wrong else print("holds"))
