"""Under saved_tensors_hooks, reading tensors that a PyLayer saved in a list dies with SIGSEGV.

"save_for_backward only support Tensor, list of Tensor, tuple of Tensor." (its own message)
"""

import os
import sys

import paddle


class Double(paddle.autograd.PyLayer):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward([x, 3 * x])
        return 2 * x

    @staticmethod
    def backward(ctx, g):
        ((x, y),) = ctx.saved_tensor()
        return g * (x + y)


child = os.fork()
if child == 0:
    x = paddle.to_tensor(1.0, stop_gradient=False)
    with paddle.autograd.saved_tensors_hooks(lambda t: t, lambda t: t):
        y = Double.apply(x)
    got = paddle.grad(y, x)[0].item()
    print(f"{got}, should be 4.0", flush=True)
    os._exit(got != 4.0)
status = os.waitpid(child, 0)[1]
print(f"died of signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else "holds" if status == 0 else "")
sys.exit(status != 0)
