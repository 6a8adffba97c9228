"""A while_loop takes a carry that requires no grad at first for a constant in every round, and the gradient is wrong.

The documentation of while_loop says that it does not support training, so an error would be right, too. It also says:
"`while_loop` is equivalent to the following", and shows the loop. scan had this fault until
https://github.com/pytorch/pytorch/pull/185332
"""

import torch
from torch._higher_order_ops.while_loop import while_loop

a = torch.tensor(3.0, requires_grad=True)
_, y = while_loop(lambda n, x: n < 2, lambda n, x: (n + 1, x * a), (torch.tensor(0), torch.tensor(1.0)))
try:
    (gradient,) = torch.autograd.grad(y, a)
except RuntimeError:
    gradient = None
if gradient is not None and gradient.item() != 6:
    print(f"the output is a * a = {y.item()} and its gradient {gradient.item()}, but should be 6.0")
    raise SystemExit(1)
print("holds")
