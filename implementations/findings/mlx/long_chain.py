"""mx.vjp of a chain of ten thousand calls ends the process if the stack is small, as in a thread.

It walks the graph by recursion. "anything from a few tens of operations to many thousands of operations per eval should
be okay" (Lazy Evaluation) is about evaluation, and does not mention a stack: a difference from PyTorch.
"""

import subprocess
import sys

CALL = """
import threading
import mlx.core as mx

def run():
    def chain(x):
        for _ in range(10_000):
            x = -x
        return x
    print(mx.vjp(chain, [mx.array(1.0)], [mx.array(1.0)])[1][0].item())

threading.stack_size(256 * 1024)
thread = threading.Thread(target=run)
thread.start()
thread.join()
"""

done = subprocess.run([sys.executable, "-c", CALL], capture_output=True, text=True, check=False)
right = done.returncode == 0 and done.stdout.strip() == "1.0"
print("holds" if right else f"got: exit code {done.returncode}; expected: 1.0")
sys.exit(not right)
