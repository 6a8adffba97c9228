"""A tape around tf.vectorized_map ignores the custom gradient of the mapped function.

https://www.tensorflow.org/api_docs/python/tf/custom_gradient: "A function `h(x)` which returns the same value as
`f(x)[0]` and whose gradient (as calculated by `tf.gradients`) is determined by `f(x)[1]`."
"""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import tensorflow as tf


@tf.custom_gradient
def scaled(x):
    return 1 * x, lambda g: 10 * g


def gradient(mapped):
    x = tf.constant([1.0, 2.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = mapped(scaled, x)
    return tf.convert_to_tensor(tape.gradient(y, x)).numpy().tolist()


print(f"around map_fn: got {gradient(tf.map_fn)}; should be [10.0, 10.0]")
print(f"around vectorized_map: got {gradient(tf.vectorized_map)}; should be [10.0, 10.0]")
right = gradient(tf.vectorized_map) == gradient(tf.map_fn) == [10.0, 10.0]
print("holds" if right else "wrong")
raise SystemExit(not right)
