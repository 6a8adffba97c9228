"""mx.argmax refuses an array without elements along an axis that has some.

NumPy gives an empty array: the result has no element to be found. MLX promises nothing of it: a difference.
"""

import sys

import mlx.core as mx
import numpy as np

expected = np.argmax(np.zeros((0, 2)), axis=1)
try:
    got = mx.argmax(mx.zeros((0, 2)), axis=1)
except ValueError as refused:
    print(f"came: ValueError: {refused}; should have come: an array of shape {expected.shape}")
    sys.exit(1)
print("holds" if got.shape == expected.shape else f"came: {got.shape}; should have come: {expected.shape}")
sys.exit(got.shape != expected.shape)
