"""snntorch 1.0.0: spikes of Sigmoid are float32 whatever the dtype of the membrane, so that the next layer crashes."""

import snntorch
import torch
from snntorch.surrogate import Sigmoid, sigmoid

bad = 0
for dtype in (torch.float64, torch.float16, torch.bfloat16):
    spikes = Sigmoid.apply(torch.tensor([0.1, -0.1], dtype=dtype), 25)
    leaky = snntorch.Leaky(beta=0.9, spike_grad=sigmoid()).to(dtype)
    try:
        torch.nn.Linear(2, 2).to(dtype)(leaky(torch.ones(1, 2, dtype=dtype))[0])
        said = "a Linear after Leaky works"
    except RuntimeError as error:
        said = f"a Linear after Leaky raises {error}"
    print(f"of {dtype}: {spikes.dtype}; {said}")
    bad += spikes.dtype != dtype
raise SystemExit(bad > 0)
