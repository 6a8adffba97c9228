"""A function that is called with keyword arguments only silently loses its custom gradient.

https://www.tensorflow.org/api_docs/python/tf/custom_gradient: "A function `h(x)` which returns the same value as
`f(x)[0]` and whose gradient (as calculated by `tf.gradients`) is determined by `f(x)[1]`."
"""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import tensorflow as tf


@tf.custom_gradient
def product(x, y):
    return x * y, lambda g: (10 * g, 100 * g)


x, y = tf.constant(2.0), tf.constant(3.0)
with tf.GradientTape() as tape:
    tape.watch([x, y])
    z = product(x=x, y=y)
got = [float(g) for g in tape.gradient(z, [x, y])]
right = got == [10.0, 100.0]
print(f"got {got}; should be [10.0, 100.0]")
print("holds" if right else "wrong")
raise SystemExit(not right)
