"""A sum over no elements does not always end: it reads flags of the array that were never set.

It should be zero immediately, as it is in about half of all processes. "Sum reduce the array over the given axes."
(docstring of mx.sum)
"""

import subprocess
import sys
import time

PROCESSES, SECONDS = 12, 20
SUM = """
import mlx.core as mx
z = mx.zeros((2, 0))
mx.eval(mx.sum(z.T * z.T, axis=0, keepdims=True))
"""

started = [subprocess.Popen([sys.executable, "-c", SUM]) for _ in range(PROCESSES)]
end = time.monotonic() + SECONDS
while time.monotonic() < end and any(each.poll() is None for each in started):
    time.sleep(0.1)
endless = [each for each in started if each.poll() is None]
for each in endless:
    each.kill()
print(
    f"{len(endless)} of {PROCESSES} processes have not summed nothing after {SECONDS} s; all should have"
    if endless
    else "holds"
)
sys.exit(bool(endless))
