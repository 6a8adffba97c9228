"""A training loop with two custom Functions, one of which is wrong: autograd-conformance watch -- train.py."""

import torch
from torch.autograd import Function


class Gate(Function):
    """x * sigmoid(k * x), where an object of the program holds k."""

    @staticmethod
    def forward(ctx, x, gate):
        ctx.save_for_backward(x)
        ctx.gate = gate
        return x * torch.sigmoid(gate.k * x)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        s = torch.sigmoid(ctx.gate.k * x)
        # The product rule gives s + ctx.gate.k * x * s * (1 - s).
        return g * (s + x * s * (1 - s)), None


class Square(Function):
    """x * x."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        return 2 * g * ctx.saved_tensors[0]


class Options:
    """What the user has chosen."""

    k = 1.7


layer = torch.nn.Linear(8, 1)
optimizer = torch.optim.SGD(layer.parameters(), 0.01)
for step in range(100):
    x = torch.randn(16, 8)
    error = Gate.apply(layer(x), Options()) - x.sum(1, keepdim=True)
    loss = Square.apply(error).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 50 == 0:
        print(f"step {step}: loss {loss.item():.2f}")
