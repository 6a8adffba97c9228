"""custom_fwd(cast_inputs=...) leaves tensors of double precision unchanged.

They should be cast. Its documentation says: "If not None, when forward runs in an autocast-enabled region, casts
incoming floating-point Tensors to the target dtype (non-floating-point Tensors are not affected), then executes
forward with autocast disabled."
https://docs.pytorch.org/docs/stable/amp.html#torch.amp.custom_fwd
"""

import torch

seen = []


class Identity(torch.autograd.Function):
    @staticmethod
    @torch.amp.custom_fwd(device_type="cpu", cast_inputs=torch.float32)
    def forward(ctx, x):
        seen.append(x.dtype)
        return x.clone()


with torch.autocast("cpu", torch.bfloat16):
    for dtype in (torch.bfloat16, torch.float16, torch.float64):
        Identity.apply(torch.ones(2, dtype=dtype))
if seen != [torch.float32] * 3:
    print(f"forward gets {seen}, but should get torch.float32 each time")
    raise SystemExit(1)
print("holds")
