"""A captured tensor gets the gradient of automatic differentiation if no argument is watched.

https://www.tensorflow.org/api_docs/python/tf/custom_gradient: "A function `h(x)` which returns the same value as
`f(x)[0]` and whose gradient (as calculated by `tf.gradients`) is determined by `f(x)[1]`."
"""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import tensorflow as tf


def gradient(watch):
    x, c = tf.constant(2.0), tf.constant(7.0)

    @tf.custom_gradient
    def scaled(x):
        return x * c, lambda g: 10 * g

    with tf.GradientTape() as tape:
        tape.watch([x, c] if watch else c)
        y = scaled(x)
    return tape.gradient(y, c)


print(f"gradient of the captured tensor, the argument watched: {gradient(True)}")
print(f"gradient of the captured tensor, the argument not watched: {gradient(False)}; should be None")
right = gradient(True) is None and gradient(False) is None
print("holds" if right else "wrong")
raise SystemExit(not right)
