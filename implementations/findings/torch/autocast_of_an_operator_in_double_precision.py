"""A rule of register_autocast leaves tensors in double precision as they are.

The documentation says: "When custom op runs in an autocast-enabled region, casts incoming floating-point Tensors to the
target dtype (non-floating-point Tensors are not affected), then executes custom op with autocast disabled."
https://docs.pytorch.org/docs/stable/library.html#torch.library.register_autocast
"""

import torch
from torch import Tensor

seen = []


@torch.library.custom_op("autocast_of_an_operator::double", mutates_args=())
def double(x: Tensor) -> Tensor:
    seen.append(x.dtype)
    return 2 * x


double.register_autocast("cpu", torch.bfloat16)
with torch.autocast("cpu", dtype=torch.bfloat16):
    for dtype in (torch.float32, torch.float64):
        double(torch.ones(2, dtype=dtype))
if seen != [torch.bfloat16] * 2:
    print(f"float32 arrived as {seen[0]}, float64 as {seen[1]}, but both should be torch.bfloat16")
    raise SystemExit(1)
print("holds")
