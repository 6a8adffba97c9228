"""torchopt 0.7.3: forward mode through AdamOp's Functions ends in an internal error of PyTorch: jvp returns None."""

import torch
import torch.autograd.forward_ad as forward_ad
from torchopt.accelerated_op.adam_op import AdamOp

bad = 0
for function, last in (
    (AdamOp.MuOp, 0.9),
    (AdamOp.NuOp, 0.999),
    (AdamOp.UpdatesOp, (0.9, 0.999, 1e-8, 0.0, torch.tensor(1))),
):
    with forward_ad.dual_level():
        inputs = [forward_ad.make_dual(torch.tensor([x]), torch.tensor([1.0])) for x in (0.3, 0.2)]
        try:
            tangent = forward_ad.unpack_dual(function.apply(*inputs, last)).tangent
            print(f"{function.__name__}: tangent {tangent}")
            bad += tangent is None
        except RuntimeError as error:
            print(f"{function.__name__}: forward mode raises {str(error)[:70]} ... {str(error)[-70:]}")
            bad += 1
raise SystemExit(bad > 0)
