"""The gradient of an index divides by zero if the array has no elements, and the process dies.

"Computes the product of the cotangents with the Jacobian of a function fun evaluated at primals." (docstring of mx.vjp)
"""

import subprocess
import sys

CALL = """
import mlx.core as mx
_, (gradient,) = mx.vjp(lambda x: x[0], [mx.zeros((4, 0, 0))], [mx.zeros((0, 0))])
mx.eval(gradient)
print(gradient.shape)
"""

done = subprocess.run([sys.executable, "-c", CALL], capture_output=True, text=True, check=False)
right = done.returncode == 0 and done.stdout.strip() == "(4, 0, 0)"
print("holds" if right else f"got: exit code {done.returncode}; expected: an array of shape (4, 0, 0)")
sys.exit(not right)
