"""torch.exp of float64 on vulkan has errors of 6e-8, as in float32.

Double precision should have about 1e-16. No sentence promises an accuracy: a difference.
"""

import math
import sys

import torch
import torchvulkan  # noqa: F401 - registers the device

found = torch.tensor(1.0, dtype=torch.float64, device="vulkan").exp().item()
if abs(found - math.e) < 1e-14:
    print("holds")
    sys.exit(0)
print(f"exp of 1 in float64 is {found!r}; it should be {math.e!r}")
sys.exit(1)
