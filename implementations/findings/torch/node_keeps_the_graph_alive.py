"""The Python object of a custom Function's node keeps alive what the node saved.

A comment in torch/autograd/graph.py, get_gradient_edge, says that it "does NOT keep the C++ graph alive". A comment is
not documentation, and other nodes keep it alive too: a difference.
"""

import gc
import weakref

import torch


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        return 2 * ctx.saved_tensors[0] * g


x = torch.ones(2, requires_grad=True) * 1
saved = weakref.ref(x)
node = Square.apply(x).grad_fn
del x
gc.collect()
if saved() is not None:
    print("the saved tensor is alive while only the node is held, but should be freed")
    raise SystemExit(1)
print("holds")
