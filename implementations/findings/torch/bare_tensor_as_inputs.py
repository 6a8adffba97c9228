"""backward(inputs=x) of a tensor x without dimensions is a TypeError: backward takes its length.

A single tensor should be accepted. The documentation says: "inputs (Sequence[Tensor] or Tensor or
Sequence[GradientEdge], optional) - Inputs w.r.t. which the gradient be accumulated into .grad."
https://docs.pytorch.org/docs/2.4/generated/torch.autograd.backward.html,
https://github.com/pytorch/pytorch/issues/150883
"""

import torch

x = torch.ones((), requires_grad=True)
try:
    (2 * x).backward(inputs=x)
    got = x.grad.item()
except TypeError as error:
    got = repr(error)
if got != 2:
    print(f"backward(inputs=x) gives {got}, but should give x.grad 2")
    raise SystemExit(1)
print("holds")
