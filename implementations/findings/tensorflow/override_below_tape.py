"""A tape within a tf.function ignores gradient_override_map.

https://www.tensorflow.org/api_docs/python/tf/Graph#gradient_override_map: "This context manager can be used to override
the gradient function that will be used for ops within the scope of the context."
"""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import tensorflow as tf


@tf.RegisterGradient("TimesThousand")
def _times_thousand(_, grad):
    return 1000 * grad


@tf.function
def both(x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        with tf.compat.v1.get_default_graph().gradient_override_map({"Square": "TimesThousand"}):
            y = tf.square(x)
    return tape.gradient(y, x), tf.gradients(y, x)[0]


by_tape, by_gradients = (float(g) for g in both(tf.constant(3.0)))
print(f"tf.gradients: got {by_gradients}; should be 1000.0")
print(f"GradientTape: got {by_tape}; should be 1000.0")
right = by_tape == by_gradients == 1000.0
print("holds" if right else "wrong")
raise SystemExit(not right)
