"""tf.vectorized_map gives products of empty elements a wrong shape.

https://www.tensorflow.org/api_docs/python/tf/vectorized_map: "Each tensor packs the results of applying fn to tensors
unpacked from elems along the first dimension, from first to last."
"""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import tensorflow as tf

elements, matrix = tf.zeros((2, 0, 3)), tf.ones((3, 4))
got = tuple(tf.vectorized_map(lambda x: x @ matrix, elements).shape)
expected = tuple(tf.stack([x @ matrix for x in elements]).shape)
right = got == expected
print(f"got shape {got}; should be {expected}")
print("holds" if right else "wrong")
raise SystemExit(not right)
