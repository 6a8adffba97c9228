"""Run eagerly, ForwardAccumulator ignores a custom gradient; under tf.function it does not.

https://www.tensorflow.org/api_docs/python/tf/custom_gradient: "The function `grad_grad_fn` will be calculating the
first order gradient of `grad_fn` with respect to `dy`, which is used to generate forward-mode gradient graphs".
"""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import tensorflow as tf


@tf.custom_gradient
def scaled(x):
    return 1 * x, lambda g: 10 * g


def tangent(f):
    x = tf.constant(1.0)
    with tf.autodiff.ForwardAccumulator(x, tf.constant(3.0)) as accumulator:
        y = f(x)
    return float(accumulator.jvp(y))


print(f"under tf.function: got {tangent(tf.function(scaled))}; should be 30.0")
print(f"eagerly: got {tangent(scaled)}; should be 30.0")
right = tangent(scaled) == tangent(tf.function(scaled)) == 30.0
print("holds" if right else "wrong")
raise SystemExit(not right)
