"""tf.function itself, in child processes, since a fault ends the process."""

import subprocess
import sys

from hypothesis import strategies as st

from autograd_conformance.harness.testing.marks import keeps

# A product plus a vector, compiled and not, in TensorFlow's default configuration.
_AFFINE = """
import sys
import tensorflow as tf

rows, columns = map(int, sys.argv[1:])
affine = lambda x, w, b: tf.matmul(x, w) + b
given = tf.zeros((rows, 0)), tf.zeros((0, columns)), tf.ones(columns)
assert (affine(*given).numpy() == tf.function(affine)(*given).numpy()).all()
"""


@keeps("TENSORFLOW-FUNCTION-01", examples=0.01, slow=True)
def test_products_with_an_empty_inner_dimension(subject, data):
    """A compiled product with an empty inner dimension, plus a vector, ends normally with the right values."""
    shape = subject.draw(data, st.tuples(st.integers(1, 3), st.integers(1, 4)), "rows and columns")
    command = [sys.executable, "-c", _AFFINE, *map(str, shape)]
    ended = subprocess.run(command, capture_output=True, check=False).returncode
    subject.assert_equal("how a compiled product with an empty inner dimension ends", got=ended, expected=0)
