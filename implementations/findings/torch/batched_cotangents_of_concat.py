"""torch.autograd.grad with is_grads_batched refuses a backward that calls torch.concat.

The same backward with torch.cat is batched. The documentation calls the feature experimental, with a
prototype of vmap as its backend, and does not say which operations it supports.
"""

import torch


def said(join):
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return torch.cat([x, x])

        @staticmethod
        def backward(ctx, g):
            first, second = g[:2], g[2:]
            return join([(first + second)[:1], (first + second)[1:]])

    x = torch.ones(2, requires_grad=True)
    try:
        return torch.autograd.grad(Twice.apply(x), x, torch.ones(3, 4), is_grads_batched=True)[0].tolist()
    except RuntimeError as refused:
        return str(refused).splitlines()[0]


found = {"cat": said(torch.cat), "concat": said(torch.concat)}
right = found == dict.fromkeys(found, [[2.0, 2.0]] * 3)
print("holds" if right else f"got: {found}; expected: the same from both")
raise SystemExit(not right)
