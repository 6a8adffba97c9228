"""With outputs of a PyLayer in no_grad_vars, gradients are wrong, or the process dies with SIGSEGV.

"This API computes the sum of gradients of `outputs` with respect to each `inputs` ." (paddle.grad), and "no_grad_vars:
the Tensors whose gradients are not needed to compute".
"""

import os
import sys

import paddle


class Twice(paddle.autograd.PyLayer):
    @staticmethod
    def forward(ctx, x):
        return 2 * x, 2 * x

    @staticmethod
    def backward(ctx, g, h):
        return 2 * g + 2 * h


wrong = False
for places, expected in (([1], 7.0), ([0], 7.0), ([0, 1], 5.0)):
    child = os.fork()
    if child == 0:
        x = paddle.to_tensor(1.0, stop_gradient=False)
        outputs = Twice.apply(x)
        y = outputs[0] + outputs[1] + 5 * x
        got = paddle.grad(y, x, no_grad_vars=[outputs[n] for n in places])[0].item()
        print(f"outputs {places} in no_grad_vars: {got}, should be {expected}", flush=True)
        os._exit(got != expected)
    status = os.waitpid(child, 0)[1]
    if os.WIFSIGNALED(status):
        print(f"outputs {places} in no_grad_vars: died of signal {os.WTERMSIG(status)}, should be {expected}")
    wrong |= status != 0
print("" if wrong else "holds")
sys.exit(wrong)
