"""Where inputs tie, forward mode of fmax, fmin and clamp has another slope than the documented one, and than maximum.

"Gradients for non-differentiable functions": "If the function is convex (at least locally), use a subgradient of
minimum norm.", and likewise for concave ones: half of each tangent. 2.14 does so.
https://docs.pytorch.org/docs/stable/notes/autograd.html#gradients-for-non-differentiable-functions
"""

import torch

wrong = 0
x, zero, one = torch.zeros(1), torch.zeros(1), torch.ones(1)
for function in (torch.maximum, torch.minimum, torch.fmax, torch.fmin, torch.clamp, torch.clamp_min, torch.clamp_max):
    tangents = [(one, zero), (zero, one)]
    got = tuple(torch.func.jvp(function, (x, x), pair)[1].item() for pair in tangents)
    if got != (0.5, 0.5):
        wrong = 1
        print(f"the slopes of {function.__name__} of equal inputs are {got}, but should be (0.5, 0.5)")
if wrong:
    raise SystemExit(1)
print("holds")
