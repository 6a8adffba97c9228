"""torch.library.get_kernel refuses the operator that custom_op gives.

The documentation says: "Can be a string (e.g., "aten::add.Tensor"), an OpOverload, or a CustomOpDef."
https://docs.pytorch.org/docs/stable/library.html#torch.library.get_kernel
"""

import torch
from torch import Tensor


@torch.library.custom_op("get_kernel_of::double", mutates_args=())
def double(x: Tensor) -> Tensor:
    return 2 * x


try:
    torch.library.get_kernel(double, "CPU")
except ValueError as error:
    print(f"it raises ValueError: {error}")
    raise SystemExit(1) from None
print("holds")
