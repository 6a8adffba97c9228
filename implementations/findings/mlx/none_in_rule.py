"""None in what a vjp rule returns is dropped: another argument gets the gradient behind it, the last one the cotangent.

"However, when a function transformation is used (e.g. computing gradients using value_and_grad()) then the functions
defined via custom_function.vjp(), custom_function.jvp() and custom_function.vmap() are used instead of the default
transformation." (docstring of mx.custom_function)
"""

import sys

import mlx.core as mx

f = mx.custom_function(lambda x, y: x + y)
f.vjp(lambda primals, cotangent, output: (None, mx.array(3.0)))

try:
    gradients = mx.vjp(f, [mx.array(1.0), mx.array(1.0)], [mx.array(10.0)])[1]
except (TypeError, ValueError) as refused:
    print("holds:", refused)
    sys.exit(0)
got = [g.item() for g in gradients]
print("holds" if got[1] == 3.0 else f"got: {got}; expected: the gradient of the second argument is 3.0")
sys.exit(got[1] != 3.0)
