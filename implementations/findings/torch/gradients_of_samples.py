"""The gradient of what bernoulli, poisson and normal draw is zero, without an error.

"Gradients for non-differentiable functions": "If the function is not a deterministic mapping (i.e. it is not a
mathematical function), it will be marked as non-differentiable. This will make it error out in the backward if used on
tensors that require grad outside of a no_grad environment."
https://docs.pytorch.org/docs/stable/notes/autograd.html#gradients-for-non-differentiable-functions
"""

import torch

wrong = 0
for sample in (torch.bernoulli, torch.poisson, torch.normal):
    p = torch.tensor([0.5, 0.25], requires_grad=True)
    try:
        sample(p).sum().backward()
    except RuntimeError:
        continue
    wrong = 1
    print(f"backward through {sample.__name__} gives its argument the gradient {p.grad.tolist()}, but should raise")
if wrong:
    raise SystemExit(1)
print("holds")
