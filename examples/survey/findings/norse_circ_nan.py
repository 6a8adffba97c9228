"""norse 1.1.0: the surrogate gradients of HeaviCirc and CircDist are NaN at large voltages: 300 in float16, 1e20."""

import torch
from norse.torch.functional.threshold import CircDist, HeaviCirc

bad = 0
for function in (HeaviCirc, CircDist):
    for dtype, large in ((torch.float16, 300.0), (torch.bfloat16, 1e20), (torch.float32, 1e20)):
        x = torch.tensor([0.5, large], dtype=dtype, requires_grad=True)
        y = function.apply(x, 1.0)
        gradient = torch.autograd.grad(y.sum(), x)[0]
        exact = [1 / (1 + v * v) ** 1.5 for v in (0.5, large)]
        print(f"{function.__name__} of {dtype} at 0.5 and {large:g}: gradient {gradient.tolist()}, exact {exact}")
        bad += bool(gradient.isnan().any())
raise SystemExit(bad > 0)
