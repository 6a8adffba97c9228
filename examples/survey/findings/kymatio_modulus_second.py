"""kymatio 0.3.0: second derivatives of the stable modulus are NaN where the input is 0.

backward divides 0 by 0 there, and fills the gradient with 0 afterwards.
"""

import torch
from kymatio.backend.torch_backend import ModulusStable

x = torch.tensor([[0.0, 0.0], [3.0, 4.0]], dtype=torch.float64, requires_grad=True)
gradient = torch.autograd.grad(ModulusStable.apply(x).sum(), x, create_graph=True)[0]
second = torch.autograd.grad(gradient.sum(), x)[0]
print(f"gradient: {gradient.tolist()}; second derivative: {second.tolist()}")
raise SystemExit(not bool(second.isfinite().all()))
