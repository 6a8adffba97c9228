"""torch.autograd.grad with is_grads_batched refuses a backward that computes with NumPy.

It runs backward once, on a tensor that stands for the whole batch, which has no array to give. The
documentation calls the feature experimental, and shows Functions that compute with NumPy without saying that
they cannot be batched so.
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
print("holds" if right else f"came: {found}; should have come: 2 everywhere")
raise SystemExit(not right)
