"""A variable is accepted as the target of a gradient.

https://www.tensorflow.org/api_docs/python/tf/GradientTape#gradient: "ValueError: If the target is a variable or if
unconnected gradients is called with an unknown value."
"""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import tensorflow as tf

variable = tf.Variable(1.0)
with tf.GradientTape() as tape:
    2 * variable
try:
    got = tape.gradient(variable, variable)
except ValueError as raised:
    got = raised
right = isinstance(got, ValueError)
print(f"got {got!r}; should be ValueError")
print("holds" if right else "wrong")
raise SystemExit(not right)
