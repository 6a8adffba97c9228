"""A custom function with a rule refuses to return anything but arrays; without one it returns what the function does.

"Instances are callables that behave identically to the wrapped function." (docstring of mx.custom_function)
"""

import sys

import mlx.core as mx

f = mx.custom_function(lambda x: (2 * x, "label"))
f.vjp(lambda primal, cotangents, outputs: cotangents[0])
try:
    got = f(mx.array(1.0))
except ValueError as refused:
    print(f"got: ValueError: {refused}; expected: the array and 'label'")
    sys.exit(1)
print("holds" if got[1] == "label" else f"got: {got}; expected: the array and 'label'")
sys.exit(got[1] != "label")
