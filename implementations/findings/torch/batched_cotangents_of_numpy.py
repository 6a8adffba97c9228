"""torch.autograd.grad with is_grads_batched refuses a backward that computes with NumPy.

It runs backward once, on a tensor that stands for the complete batch and cannot become an array. The
documentation calls the feature experimental, and shows Functions that compute with NumPy without saying that
they cannot be batched.
"""

import torch


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return torch.as_tensor(x.detach().numpy() * 2)

    @staticmethod
    def backward(ctx, g):
        return torch.as_tensor(g.detach().numpy() * 2)


x = torch.ones(2, requires_grad=True)
try:
    found = torch.autograd.grad(Double.apply(x), x, torch.ones(3, 2), is_grads_batched=True)[0].tolist()
except RuntimeError as refused:
    found = str(refused).splitlines()[0]
right = found == [[2.0, 2.0]] * 3
print("holds" if right else f"got: {found}; expected: 2 everywhere")
raise SystemExit(not right)
