"""norse 1.1.0: LIFAdjointRefracFunction cannot be differentiated: backward reads p.tau_syn_inv, p has p.lif only."""

import torch
from norse.torch.functional.adjoint.lif_refrac_adjoint import LIFAdjointRefracFunction
from norse.torch.functional.lif_refrac import LIFRefracParameters

torch.manual_seed(0)
spikes, weights = torch.ones(1, 3), torch.randn(3, 3, requires_grad=True)
zero = torch.zeros(1, 3)
out = LIFAdjointRefracFunction.apply(spikes, zero, zero, zero, zero, weights, weights, LIFRefracParameters(), 0.001)
try:
    gradient = torch.autograd.grad(out[2].sum(), weights)[0]
except AttributeError as error:
    print("current", out[2].tolist(), "but its gradient raises:", error)
    raise SystemExit(1) from None
print("gradient", gradient.tolist())
raise SystemExit(0)
