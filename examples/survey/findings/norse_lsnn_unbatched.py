"""norse 1.1.0: LSNNAdjointFunction takes vectors, as norse's own tests call it, but then its gradient raises."""

import torch
from norse.torch.functional.adjoint.lsnn_adjoint import LSNNAdjointFunction
from norse.torch.functional.lsnn import LSNNParameters

torch.manual_seed(0)
weights = torch.randn(3, 3, requires_grad=True)
bad = 0
for shape in ((1, 3), (3,)):
    spikes, state = torch.ones(shape), torch.zeros(shape)
    out = LSNNAdjointFunction.apply(spikes, state, state, state, state, weights, weights, LSNNParameters(), 0.001)
    try:
        gradient = torch.autograd.grad(out[2].sum(), weights)[0]
        print(f"of shape {shape}: current {out[2].tolist()}, gradient by the weights {gradient.tolist()}")
    except RuntimeError as error:
        print(f"of shape {shape}: current {out[2].tolist()}, gradient raises: {error}")
        bad += 1
raise SystemExit(bad > 0)
