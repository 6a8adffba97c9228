"""gradient within the context of its tape gives a result.

https://www.tensorflow.org/api_docs/python/tf/GradientTape#gradient: "RuntimeError: If called inside the context of the
tape."
"""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import tensorflow as tf

x = tf.constant(1.0)
with tf.GradientTape() as tape:
    tape.watch(x)
    y = 2 * x
    try:
        got = tape.gradient(y, x)
    except RuntimeError as raised:
        got = raised
right = isinstance(got, RuntimeError)
print(f"got {got!r}; should be RuntimeError")
print("holds" if right else "wrong")
raise SystemExit(not right)
