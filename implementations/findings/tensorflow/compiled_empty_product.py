"""Under tf.function a product with an empty inner dimension, plus a vector, aborts the process.

https://www.tensorflow.org/api_docs/python/tf/function: "executes a TensorFlow graph (`tf.Graph`) created by
trace-compiling the TensorFlow operations in `func`." Without tf.function the result is the vector in each row.
"""

import subprocess
import sys

CHILD = """
import tensorflow as tf
affine = lambda x, w, b: tf.matmul(x, w) + b
x, w, b = tf.zeros((2, 0)), tf.zeros((0, 3)), tf.ones(3)
assert (affine(x, w, b).numpy() == 1).all()
assert (tf.function(affine)(x, w, b).numpy() == 1).all()
"""
ended = subprocess.run([sys.executable, "-c", CHILD], capture_output=True, text=True)
said = [line for line in ended.stderr.splitlines() if "what()" in line or "Error" in line]
right = ended.returncode == 0
print(f"the process ended with {ended.returncode}; should be 0", *said, sep="\n")
print("holds" if right else "wrong")
raise SystemExit(not right)
