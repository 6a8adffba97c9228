"""sinabs 3.1.3: spikes are float32 whatever the dtype of the membrane, so that a next layer in float64 crashes."""

import torch
from sinabs.activation.spike_generation import MaxSpikeInner, MultiSpike, SingleSpike
from sinabs.activation.surrogate_gradient_fn import SingleExponential

membrane = torch.tensor([0.4, 1.4, 2.4], dtype=torch.float64)
bad = 0
for function, arguments in ((SingleSpike, ()), (MultiSpike, ()), (MaxSpikeInner, (2,))):
    spikes = function.apply(membrane, *arguments, 1.0, SingleExponential())
    try:
        torch.nn.Linear(3, 1).double()(spikes)
        said = "a Linear after it works"
    except RuntimeError as error:
        said = f"a Linear after it raises {error}"
    print(f"{function.__name__} of float64: {spikes.dtype}; {said}")
    bad += spikes.dtype != membrane.dtype
raise SystemExit(bad > 0)
