"""spikingjelly 2.0.0: LeakyIntegratorStep cannot be differentiated if only the decay requires grad."""

import torch
from spikingjelly.activation_based.lava_exchange import LeakyIntegratorStep

state = torch.tensor([[1.0]])
decay = torch.tensor(1.0, requires_grad=True)
try:
    torch.autograd.grad(LeakyIntegratorStep.apply(torch.tensor([[1.0]]), decay, state, 4096).sum(), decay)
except ValueError as raised:
    print("backward raises", raised)
    raise SystemExit(1) from None
