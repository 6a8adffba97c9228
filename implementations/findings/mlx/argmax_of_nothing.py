"""mx.argmax refuses an array without elements along an axis that has some.

NumPy returns an empty array. MLX promises nothing here: a difference.
"""

import sys

import mlx.core as mx
import numpy as np

expected = np.argmax(np.zeros((0, 2)), axis=1)
try:
    got = mx.argmax(mx.zeros((0, 2)), axis=1)
except ValueError as refused:
    print(f"got: ValueError: {refused}; expected: an array of shape {expected.shape}")
    sys.exit(1)
print("holds" if got.shape == expected.shape else f"got: {got.shape}; expected: {expected.shape}")
sys.exit(got.shape != expected.shape)
