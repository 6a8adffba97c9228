"""The second derivative of a product of matrices without elements is refused if only one factor is tracked.

"create_graph: ... When it is True, higher order derivatives are supported to compute" (paddle.grad)
"""

import sys

import paddle

x, w = paddle.zeros([2, 0]), paddle.zeros([0, 3])
w.stop_gradient = False
g = paddle.ones([2, 3])
g.stop_gradient = False
try:
    # Whether the first derivative is refused too depends on earlier allocations.
    (first,) = paddle.grad(x @ w, w, g, create_graph=True)
    got = list(paddle.grad(first, g)[0].shape)
except ValueError as error:
    print("should be a tensor of shape [2, 3], but is", error)
    sys.exit(1)
print("holds:", got)
