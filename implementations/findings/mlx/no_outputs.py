"""A custom function that has a rule and returns an empty tuple ends the process with a segmentation fault.

"Instances are callables that behave identically to the wrapped function." (docstring of mx.custom_function)
"""

import subprocess
import sys

CALL = """
import mlx.core as mx
f = mx.custom_function(lambda x: ())
f.vjp(lambda primal, cotangents, outputs: mx.zeros_like(primal))
print(f(mx.array(1.0)))
"""

done = subprocess.run([sys.executable, "-c", CALL], capture_output=True, text=True, check=False)
right = done.returncode == 0 and done.stdout.strip() == "()"
print("holds" if right else f"got: exit code {done.returncode}; expected: ()")
sys.exit(not right)
