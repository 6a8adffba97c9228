"""Backward dies with SIGSEGV if one of the outputs of a PyLayer is a list of several tensors.

The source handles such an output: its gradients should arrive as one list (py_layer_node.cc). "This API computes the
sum of gradients of `outputs` with respect to each `inputs` ." (paddle.grad)
"""

import os
import sys

import paddle


class Lists(paddle.autograd.PyLayer):
    @staticmethod
    def forward(ctx, x):
        return [2 * x, 3 * x], 5 * x

    @staticmethod
    def backward(ctx, gradients, g):
        return 2 * gradients[0] + 3 * gradients[1] + 5 * g


child = os.fork()
if child == 0:
    x = paddle.to_tensor(1.0, stop_gradient=False)
    (a, b), c = Lists.apply(x)
    got = paddle.grad([a, b, c], x)[0].item()
    print(f"{got}, should be 10.0", flush=True)
    os._exit(got != 10.0)
status = os.waitpid(child, 0)[1]
print(f"died of signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else "holds" if status == 0 else "")
sys.exit(status != 0)
