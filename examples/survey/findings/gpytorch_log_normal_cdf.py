"""gpytorch 1.15.2: LogNormalCDF and its gradient are off by 0.002 and more just below -1, where the formula changes."""

import torch
from gpytorch.functions import log_normal_cdf


def results(function):
    z = torch.tensor([-1.01, -0.99], dtype=torch.float64, requires_grad=True)
    y = function(z)
    return y.tolist(), torch.autograd.grad(y.sum(), z)[0].tolist()


(values, gradients), (expected, slopes) = results(log_normal_cdf), results(torch.special.log_ndtr)
print("values and gradients: LogNormalCDF", values, gradients, "torch", expected, slopes)
raise SystemExit(abs(values[0] - expected[0]) > 1e-3 and abs(gradients[0] - slopes[0]) > 1e-3)
