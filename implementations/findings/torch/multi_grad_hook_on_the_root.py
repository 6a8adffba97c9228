"""A multi-grad hook in mode "all" on several tensors, one of them the start of the pass, fires too early and twice.

It should be called once, with both gradients. The documentation of register_multi_grad_hook says: "After every
non-ignored tensor's gradient has been computed, fn will be called with those gradients."
https://docs.pytorch.org/docs/stable/autograd.html#torch.autograd.graph.register_multi_grad_hook
"""

import torch

x = torch.ones((), requires_grad=True)
y = 2 * x
seen = []
register = torch.autograd.graph.register_multi_grad_hook
register((y, x), lambda grads: seen.append([None if g is None else g.item() for g in grads]))
y.backward()
if seen != [[1, 2]]:
    print(f"the calls of the hook are {seen}, but should be [[1.0, 2.0]]")
    raise SystemExit(1)
print("holds")
