"""autograd.grad raises "not supported" if a leaf among its inputs has a multi-grad hook in mode "all".

The hook should be called. The documentation of register_multi_grad_hook mentions grad along with backward: "... if a
tensor is not needed to compute the gradients for any inputs specified for the current .backward() or .grad() call,
this tensor will be ignored and the hook will not wait for its gradient to be computed."
https://docs.pytorch.org/docs/stable/autograd.html#torch.autograd.graph.register_multi_grad_hook
"""

import torch

x, y = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
seen = []
torch.autograd.graph.register_multi_grad_hook((x, y), lambda grads: seen.append([g.tolist() for g in grads]))
try:
    torch.autograd.grad((2 * x + 3 * y).sum(), (x, y))
except RuntimeError as error:
    print(f"autograd.grad raises {' '.join(str(error).split())[:96]!r}...")
if seen != [[[2, 2], [3, 3]]]:
    print(f"the calls of the hook are {seen}, but should be [[[2.0, 2.0], [3.0, 3.0]]]")
    raise SystemExit(1)
print("holds")
