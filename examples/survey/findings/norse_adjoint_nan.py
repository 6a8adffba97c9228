"""norse 1.1.0: LIF adjoint gradients are NaN or inf where a spike meets a voltage that stands still: 1 / 0."""

import torch
from norse.torch.functional.adjoint.lif_adjoint import LIFAdjointFunction, LIFFeedForwardAdjointFunction
from norse.torch.functional.adjoint.lif_refrac_adjoint import LIFAdjointRefracFeedForwardFunction
from norse.torch.functional.lif import LIFParameters
from norse.torch.functional.lif_refrac import LIFRefracParameters

none, weights = torch.zeros(1, 1, dtype=torch.float64), torch.ones(1, 1, dtype=torch.float64)
bad = 0
for current in (2.1, 2.0):
    # The voltage is 2, which is above the threshold, and changes by current - 2.
    i = torch.full((1, 1), current, dtype=torch.float64)
    for function, inputs in (
        (LIFFeedForwardAdjointFunction, lambda v, i=i: (none, v, i, LIFParameters())),
        (LIFAdjointFunction, lambda v, i=i: (none, none, v, i, weights, weights, LIFParameters())),
        (LIFAdjointRefracFeedForwardFunction, lambda v, i=i: (none, v, i, none, LIFRefracParameters())),
    ):
        v = torch.full((1, 1), 2.0, dtype=torch.float64, requires_grad=True)
        spikes = function.apply(*inputs(v), 0.001)[0]
        gradient = torch.autograd.grad(spikes.sum(), v)[0]
        print(f"{function.__name__}, voltage 2, current {current}: {spikes.tolist()}, gradient {gradient.tolist()}")
        bad += not gradient.isfinite().all()
raise SystemExit(bad > 0)
