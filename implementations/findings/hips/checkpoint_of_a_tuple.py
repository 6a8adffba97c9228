"""The gradients of a checkpointed function that returns a tuple, list or dict are zeros.

"Returns a checkpointed version of `fun`, where intermediate values computed during the forward pass of `fun` are
discarded and then recomputed for the backward pass." (autograd.checkpoint, docstring)
"""

import sys

from autograd import checkpoint, grad


def pair(x):
    return 2.0 * x, 3.0 * x


def loss(fun):
    return lambda x: fun(x)[0] + fun(x)[1]


came, expected = grad(loss(checkpoint(pair)))(1.0), grad(loss(pair))(1.0)
print("got:", came)
print("expected:", expected)
if came != expected:
    sys.exit(1)
print("holds")
