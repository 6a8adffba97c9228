"""On vulkan nothing can be copied into a conjugated view.

Forward mode does so for complex tensors. No sentence promises it for a device: a difference.
"""

import sys

import torch
import torchvulkan  # noqa: F401 - registers the device

z = torch.tensor([1 + 2j], device="vulkan")
try:
    torch.zeros_like(z).conj().copy_(z)
except RuntimeError as raised:
    print(f"copying into a conjugated view raises {raised}; it should copy")
    sys.exit(1)
print("holds")
