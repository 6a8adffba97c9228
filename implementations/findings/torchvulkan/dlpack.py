"""A tensor on vulkan cannot be exported by DLPack.

DLPack has a device type for Vulkan. No sentence promises it for a device of a package: a difference.
"""

import sys

import torch
import torchvulkan  # noqa: F401 - registers the device

try:
    torch.from_dlpack(torch.ones(2, device="vulkan"))
except ValueError as raised:
    print(f"torch.from_dlpack raises {raised}; it should give a tensor of the same memory")
    sys.exit(1)
print("holds")
