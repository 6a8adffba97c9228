"""mx.exp of float64 arrays has errors of 1e-7, as in float32; sin, cos and sigmoid too.

Double precision should have about 1e-16. MLX lists float64 as "64-bit double" and promises no accuracy: a difference.
"""

import sys

import mlx.core as mx
import numpy as np

x = np.linspace(-3, 3, 8)
off = float(np.max(np.abs(np.array(mx.exp(mx.array(x, mx.float64))) / np.exp(x) - 1)))
if off < 1e-14:
    print("holds")
    sys.exit(0)
print(f"mx.exp of float64 is off by {off:.2g}, relatively; it should be some 1e-16")
sys.exit(1)
