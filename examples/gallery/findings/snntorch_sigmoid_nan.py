"""snntorch 1.0.0: the surrogate gradient of Sigmoid is NaN far below the threshold: exp overflows, inf / inf."""

import torch
from snntorch.surrogate import Sigmoid

bad = 0
for dtype, membrane in ((torch.float32, -3.6), (torch.float32, -10.0), (torch.float16, -0.5), (torch.float16, -3.0)):
    x = torch.tensor([membrane], dtype=dtype, requires_grad=True)
    got = torch.autograd.grad(Sigmoid.apply(x, 25).sum(), x)[0].item()
    s = torch.sigmoid(25 * x.detach().double())
    print(f"{dtype} membrane {membrane}: gradient {got}, by the documented formula {(25 * s * (1 - s)).item():.3g}")
    bad += got != got
raise SystemExit(bad > 0)
