"""The gradient of a batched custom function is the default one: mx.vmap drops the function's vjp rule.

"when a function transformation is used (e.g. computing gradients using value_and_grad()) then the functions defined via
custom_function.vjp(), custom_function.jvp() and custom_function.vmap() are used instead of the default transformation"
(docstring of mx.custom_function), and "Any of the MLX function transformations can be composed in any order to any
depth" (Function Transforms).
"""

import sys

import mlx.core as mx

f = mx.custom_function(lambda x: x * 2)
f.vjp(lambda primal, cotangent, output: cotangent * 42)
x = mx.array([1.0, 2.0, 3.0])
alone = mx.vmap(mx.grad(f))(x).tolist()
got = mx.grad(lambda x: mx.vmap(f)(x).sum())(x).tolist()
print(f"vmap of grad: {alone}; grad of vmap: {got}")
print("holds" if got == [42.0] * 3 else f"got: {got}; expected: {[42.0] * 3}")
sys.exit(got != [42.0] * 3)
