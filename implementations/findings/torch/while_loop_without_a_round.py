"""A while_loop that runs no round gives the gradient of one round, silently.

The documentation of while_loop says that it does not support training, so an error would be right, too. It also says:
"`while_loop` is equivalent to the following", and shows the loop.
https://github.com/pytorch/pytorch/blob/main/torch/_higher_order_ops/while_loop.py
"""

import torch
from torch._higher_order_ops.while_loop import while_loop

x = torch.tensor([1.0, 2.0], requires_grad=True)
_, y = while_loop(lambda n, x: n < 0, lambda n, x: (n + 1, x * 3), (torch.tensor(0), x))
try:
    (gradient,) = torch.autograd.grad(y.sum(), x)
except RuntimeError:
    gradient = None
if gradient is not None and gradient.tolist() != [1, 1]:
    print(f"the output is {y.tolist()} and its gradient {gradient.tolist()}, but should be [1.0, 1.0]")
    raise SystemExit(1)
print("holds")
