"""entmax 1.3: gradients of normmax are NaN in single precision for equal scores and alpha=1000."""

import torch
from entmax.root_finding import NormmaxBisectFunction


def gradient(dtype):
    scores = torch.ones(2, dtype=dtype, requires_grad=True)
    found = NormmaxBisectFunction.apply(scores, 1000, -1, 50)
    return torch.autograd.grad(found[0], scores)[0].tolist()


print("float32", gradient(torch.float32), "float64", gradient(torch.float64))
raise SystemExit(any(g != g for g in gradient(torch.float32)))
