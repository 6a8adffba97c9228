"""Where the input of clamp equals a bound that is a tensor, the input gets the full gradient, and the bound none.

They should share it evenly, as the inputs of maximum do. "Gradients for non-differentiable functions": "If the function
is convex (at least locally), use a subgradient of minimum norm.", and likewise for concave ones. 2.14 does so.
https://docs.pytorch.org/docs/stable/notes/autograd.html#gradients-for-non-differentiable-functions
"""

import torch

wrong = 0
for function in (torch.maximum, torch.clamp, torch.clamp_min, torch.clamp_max):
    x, bound = (torch.zeros((), requires_grad=True) for _ in range(2))
    got = tuple(g.item() for g in torch.autograd.grad(function(x, bound), (x, bound)))
    if got != (0.5, 0.5):
        wrong = 1
        print(f"the gradients of {function.__name__} at its bound are {got}, but should be (0.5, 0.5)")
if wrong:
    raise SystemExit(1)
print("holds")
