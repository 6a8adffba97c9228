"""torch.matmul on vulkan is wrong where more than some 50,000 products are added up.

The documentation of torch.matmul promises: "If both arguments are 2-dimensional, the matrix-matrix product is
returned."
"""

import sys

import torch
import torchvulkan  # noqa: F401 - registers the device

ones = torch.ones(65504, 1, device="vulkan")
found = (ones.mT @ ones).item()
if found == 65504:
    print("holds")
    sys.exit(0)
print(f"the product of a row and a column of 65504 ones is {found:g}; it should be 65504")
sys.exit(1)
