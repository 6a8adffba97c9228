"""A chain of 12 000 calls of a PyLayer cannot be freed on a stack of 256 KiB: the process dies.

In PyTorch a graph is freed without recursion.
"""

import subprocess
import sys

CHAIN = """
import threading, paddle

class Negative(paddle.autograd.PyLayer):
    @staticmethod
    def forward(ctx, x):
        return -x

    @staticmethod
    def backward(ctx, g):
        return -g

def chain():
    x = y = paddle.to_tensor(1.0, stop_gradient=False)
    for _ in range(12_000):
        y = Negative.apply(y)
    print(paddle.grad(y, x)[0].item())

threading.stack_size(256 * 1024)
thread = threading.Thread(target=chain)
thread.start()
thread.join()
"""
done = subprocess.run([sys.executable, "-c", CHAIN], capture_output=True, check=False, text=True)
print("holds" if done.returncode == 0 else f"died of signal {-done.returncode}, should print 1.0")
sys.exit(done.returncode != 0)
