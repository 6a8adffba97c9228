"""torch.exp and torch.log of float64 on vulkan are only as accurate as in float32.

Double precision should have about 1e-16. No sentence promises an accuracy: a difference.
"""

import math
import sys

import torch
import torchvulkan  # noqa: F401 - registers the device

one, three = (torch.tensor(x, dtype=torch.float64, device="vulkan") for x in (1.0, 3.0))
exp, log = one.exp().item(), three.log().item()
if abs(exp - math.e) < 1e-14 and abs(log - math.log(3)) < 1e-14:
    print("holds")
    sys.exit(0)
print(f"exp of 1 in float64 is {exp!r}; it should be {math.e!r}")
print(f"log of 3 in float64 is {log!r}; it should be {math.log(3)!r}")
sys.exit(1)
