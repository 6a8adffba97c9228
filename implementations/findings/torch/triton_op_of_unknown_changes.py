"""triton_op refuses "unknown" as mutates_args.

The documentation says: "The names of args that the function mutates. [...] If "unknown", it pessimistically assumes
that all inputs to the operator are being mutated."
https://docs.pytorch.org/docs/stable/library.html#torch.library.triton_op
"""

import torch
from torch import Tensor


def doubles(x: Tensor) -> None:
    x.mul_(2)


try:
    torch.library.triton_op("unknown_changes::doubles", doubles, mutates_args="unknown")
except ValueError as error:
    print(f"it raises ValueError: {error}")
    raise SystemExit(1) from None
print("holds")
