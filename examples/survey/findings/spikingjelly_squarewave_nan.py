"""spikingjelly 2.0.0: the gradient of squarewave_fourier_series is NaN in float16 for large inputs."""

import torch
from spikingjelly.activation_based.surrogate import squarewave_fourier_series


def gradient(dtype):
    x = torch.tensor([6000.0], dtype=dtype, requires_grad=True)
    return torch.autograd.grad(squarewave_fourier_series.apply(x, 2, 0.5).sum(), x)[0].item()


print("float16", gradient(torch.float16), "float64", gradient(torch.float64))
raise SystemExit(gradient(torch.float16) != gradient(torch.float16))
