"""clamp, clamp_min and clamp_max pass the full gradient where the input equals a bound.

It should be 0 there, as it is for relu and hardtanh. "Gradients for non-differentiable functions": "If the function
is convex (at least locally), use a subgradient of minimum norm.", and likewise for concave ones.
https://docs.pytorch.org/docs/stable/notes/autograd.html#gradients-for-non-differentiable-functions
"""

import torch

functions = {
    "relu": torch.relu,
    "clamp(min=0)": lambda x: x.clamp(min=0),
    "clamp(max=0)": lambda x: x.clamp(max=0),
    "clamp_min(0)": lambda x: x.clamp_min(0),
    "clamp_max(0)": lambda x: x.clamp_max(0),
}
wrong = 0
for name, function in functions.items():
    x = torch.zeros((), requires_grad=True)
    got = torch.autograd.grad(function(x), x)[0].item()
    if got != 0:
        wrong = 1
        print(f"the gradient of {name} at 0 is {got}, but should be 0")
if wrong:
    raise SystemExit(1)
print("holds")
