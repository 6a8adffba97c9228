"""An input given by keyword gets no gradient from grad_fn, or its gradient counts as one too many.

https://www.tensorflow.org/api_docs/python/tf/custom_gradient: "A function `h(x)` which returns the same value as
`f(x)[0]` and whose gradient (as calculated by `tf.gradients`) is determined by `f(x)[1]`."; and the error under
tf.function: "The custom_gradient decorator currently supports keywords arguments only when eager execution is enabled."
"""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import tensorflow as tf


def gradients(count):
    @tf.custom_gradient
    def product(x, y):
        return x * y, lambda g: (10 * g, 100 * g)[:count]

    x, y = tf.constant(2.0), tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch([x, y])
        z = product(x, y=y)
    try:
        return [None if g is None else float(g) for g in tape.gradient(z, [x, y])]
    except ValueError as raised:
        return f"ValueError: {raised}"


got = gradients(2)
right = got == [10.0, 100.0]
print(f"grad_fn returns a gradient for both: got {got}; should be [10.0, 100.0]")
print(f"grad_fn returns a gradient for x alone: got {gradients(1)}; should be an error")
print("holds" if right else "wrong")
raise SystemExit(not right)
