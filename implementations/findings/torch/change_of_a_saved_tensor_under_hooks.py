"""Under saved-tensor hooks, changing a saved tensor in place is not noticed: the gradient is silently wrong.

Reading it should raise. "In-place correctness checks": "Once you access self.saved_tensors it is checked, and if it is
greater than the saved value an error is raised. This ensures that if you're using in-place functions and not seeing
any errors, you can be sure that the computed gradients are correct."
https://docs.pytorch.org/docs/stable/notes/autograd.html#in-place-correctness-checks
"""

import torch

x, y = torch.full((2,), 3.0, requires_grad=True), torch.full((2,), 5.0)
# The pair of hooks that the documentation of saved_tensors_hooks prints.
with torch.autograd.graph.saved_tensors_hooks(lambda t: t.detach(), lambda t: t):
    z = x * y
y.fill_(100.0)
try:
    (got,) = torch.autograd.grad(z.sum(), x)
except RuntimeError as error:
    print(f"holds: {error!r}")
else:
    print(f"the gradient of 5 * x is {got.tolist()}, but there should be an error: y was changed after the product")
    raise SystemExit(1)
