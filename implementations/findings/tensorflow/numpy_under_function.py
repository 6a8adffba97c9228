"""NumPy cannot compute with the tensors of a tf.function: NotImplementedError.

PyTorch leaves the compiled graph for NumPy (no promise of TensorFlow is broken; the guide on tf.function says
to call tf.numpy_function).
"""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import numpy as np
import tensorflow as tf


@tf.function
def sine(x):
    return tf.constant(np.sin(np.asarray(x)))


try:
    got = sine(tf.constant(1.0))
except NotImplementedError as raised:
    got = f"NotImplementedError: {str(raised).splitlines()[-1]}"
right = tf.is_tensor(got)
print(f"got {got}; should be a tensor of {np.sin(1.0):.6f}")
print("holds" if right else "wrong")
raise SystemExit(not right)
