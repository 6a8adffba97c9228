"""snntorch 1.0.0: LeakySpikeOperator cannot be differentiated: backward returns one gradient for two arguments."""

import torch
from snntorch.surrogate import LeakySpikeOperator

membrane = torch.tensor([0.1, -0.1], requires_grad=True)
spikes = LeakySpikeOperator.apply(membrane, 0.1)
try:
    gradient = torch.autograd.grad(spikes.sum(), membrane)[0]
except RuntimeError as error:
    print("spikes", spikes.tolist(), "but their gradient raises:", error)
    raise SystemExit(1) from None
print("gradient", gradient.tolist())
raise SystemExit(gradient.tolist() != torch.tensor([1, 0.1]).tolist())
