"""sinabs 3.1.3: a threshold tensor that changes in place before backward makes gradients wrong: it is kept on ctx."""

import torch
from sinabs.activation.spike_generation import MaxSpikeInner, MultiSpike, SingleSpike
from sinabs.activation.surrogate_gradient_fn import SingleExponential

bad = 0
for function, arguments in ((SingleSpike, ()), (MultiSpike, ()), (MaxSpikeInner, (2,))):
    membrane = torch.tensor([0.4, 1.4, 2.4], requires_grad=True)
    threshold = torch.tensor(1.0)
    spikes = function.apply(membrane, *arguments, threshold, SingleExponential())
    before = torch.autograd.grad(spikes.sum(), membrane, retain_graph=True)[0]
    threshold.fill_(5.0)
    try:
        after = torch.autograd.grad(spikes.sum(), membrane)[0]
    except RuntimeError as error:
        print(function.__name__, "refused, as it should be:", error)
        continue
    print(f"{function.__name__}: {before.tolist()}; after threshold.fill_(5), without an error: {after.tolist()}")
    bad += not torch.allclose(before, after)
raise SystemExit(bad > 0)
