"""The printed example of nested custom gradients raises ValueError.

https://www.tensorflow.org/api_docs/python/tf/custom_gradient: "Instead, wrap nested `@tf.custom_gradients` in another
function:", and the example, here with a cube.
"""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import tensorflow as tf


@tf.custom_gradient
def op_with_fused_backprop(x):
    y, x_grad = x**3, 3 * x**2

    def first_order_gradient(dy):
        @tf.custom_gradient
        def first_order_custom(unused_x):
            return x_grad, lambda ddy: (ddy * 6 * x, ddy)

        return dy * first_order_custom(x)

    return y, first_order_gradient


x = tf.constant(2.0)
with tf.GradientTape() as outer, tf.GradientTape() as inner:
    outer.watch(x)
    inner.watch(x)
    first = inner.gradient(op_with_fused_backprop(x), x)
try:
    got = float(outer.gradient(first, x))
except ValueError as raised:
    got = f"ValueError: {raised}"
right = got == 12.0
print(f"second derivative: got {got}; should be 12.0")
print("holds" if right else "wrong")
raise SystemExit(not right)
