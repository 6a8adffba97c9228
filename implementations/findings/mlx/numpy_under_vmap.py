"""A custom function that computes with NumPy cannot be batched by its own vmap rule, nor compiled.

mx.vmap and mx.compile call the function with arrays that have no values, before they call any rule. For mx.compile it
is documented that such arrays cannot be evaluated: a difference from PyTorch, where the rule is called instead.
"""

import sys

import mlx.core as mx
import numpy as np

f = mx.custom_function(lambda x: mx.array(np.array(x) * 2))
f.vmap(lambda x, axis: (mx.array(np.array(x) * 2), axis))
x = mx.array([1.0, 2.0])


def said(transformed):
    try:
        return transformed(x).tolist()
    except ValueError as refused:
        return f"ValueError: {refused}"


found = {"vmap": said(mx.vmap(f)), "compile": said(mx.compile(f))}
right = found == {name: [2.0, 4.0] for name in found}
print("holds" if right else f"got: {found}; expected: [2.0, 4.0] from both")
sys.exit(not right)
