"""kymatio 0.3.0: second derivatives of ModulusStable are NaN at 0, although it is there to have no NaN at 0."""

import torch
from kymatio.backend.torch_backend import ModulusStable

bad = 0
for point in ([3.0, 4.0], [0.0, 0.0]):
    x = torch.tensor([point], dtype=torch.float64, requires_grad=True)
    first = torch.autograd.grad(ModulusStable.apply(x).sum(), x, create_graph=True)[0]
    second = torch.autograd.grad(first.sum(), x)[0]
    print(f"at {point}: gradient {first.tolist()}, second derivative {second.tolist()}")
    bad += bool(second.isnan().any())
raise SystemExit(bad > 0)
