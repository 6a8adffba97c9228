"""A second backward() through a PyLayer dies with SIGSEGV, with and without retain_graph=True.

"If False, the graph used to compute grads will be freed. If you would like to add more ops to the built graph after
calling this method, set the parameter retain_graph to True, then the grads will be retained." (Tensor.backward)
"""

import os
import sys

import paddle


class Double(paddle.autograd.PyLayer):
    @staticmethod
    def forward(ctx, x):
        return 2 * x

    @staticmethod
    def backward(ctx, g):
        return 2 * g


wrong = False
for retain_graph, expected in ((True, "4.0"), (False, "an error")):
    child = os.fork()
    if child == 0:
        x = paddle.to_tensor(1.0, stop_gradient=False)
        y = Double.apply(x)
        try:
            y.backward(retain_graph=retain_graph)
            y.backward(retain_graph=retain_graph)
        except SystemError:
            os._exit(retain_graph)
        os._exit(not retain_graph or x.grad.item() != 4.0)
    status = os.waitpid(child, 0)[1]
    print(f"retain_graph={retain_graph}: should give {expected}; exit status {status}, signal {status & 127}")
    wrong |= status != 0
print("" if wrong else "holds")
sys.exit(wrong)
