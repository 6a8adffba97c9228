"""Where both inputs of fmax or fmin are equal, the first one gets the full gradient.

They should share it evenly, as the inputs of maximum and minimum do. "Gradients for non-differentiable functions": "If
the function is convex (at least locally), use a subgradient of minimum norm.", and likewise for concave ones.
https://docs.pytorch.org/docs/stable/notes/autograd.html#gradients-for-non-differentiable-functions
"""

import torch

wrong = 0
for function in (torch.maximum, torch.minimum, torch.fmax, torch.fmin):
    x, y = (torch.zeros((), requires_grad=True) for _ in range(2))
    got = tuple(g.item() for g in torch.autograd.grad(function(x, y), (x, y)))
    if got != (0.5, 0.5):
        wrong = 1
        print(f"the gradients of {function.__name__} of equal inputs are {got}, but should be (0.5, 0.5)")
if wrong:
    raise SystemExit(1)
print("holds")
