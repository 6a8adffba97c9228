"""The .grad of a tensor that retains it is set before the pre-hooks of its node run.

It should be set after them. "The order in which the different hooks are fired": "2. pre-hooks registered to Node are
executed (if Node is executed). 3. the .grad field is updated for Tensors that retain_grad".
https://docs.pytorch.org/docs/stable/notes/autograd.html#the-order-in-which-the-different-hooks-are-fired
"""

import torch

y = 2 * torch.ones(2, requires_grad=True)
y.retain_grad()
seen = []
y.grad_fn.register_prehook(lambda _: seen.append(y.grad))
y.sum().backward()
if seen != [None]:
    print(f"y.grad in a pre-hook of its node is {seen[0].tolist()}, but should be None")
    raise SystemExit(1)
print("holds")
