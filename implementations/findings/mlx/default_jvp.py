"""A custom function without a jvp rule has the tangent of its operations, where PyTorch refuses forward mode.

"Note, all custom transformations are optional. Undefined transformations fall back to the default behaviour."
(docstring of mx.custom_function): a difference.
"""

import sys

import mlx.core as mx

f = mx.custom_function(lambda x: 3 * x)
f.vjp(lambda primal, cotangent, output: cotangent * 42)
try:
    _, (got,) = mx.jvp(f, [mx.array(1.0)], [mx.array(1.0)])
except (NotImplementedError, RuntimeError, ValueError) as refused:
    print(f"holds: {refused}")
    sys.exit(0)
print(f"got: {got.item()}; PyTorch raises NotImplementedError")
sys.exit(1)
