"""A backward pass runs through the whole graph: gradients of some tensors alone cannot be asked for.

A difference from PyTorch, whose backward(inputs=...) runs no node that these inputs do not need.
"""

import inspect
import sys

import mygrad as mg

x, y = mg.tensor([1.0, 2.0]), mg.tensor([3.0, 4.0])
(x * y).backward()
parameters = list(inspect.signature(mg.Tensor.backward).parameters)
print(f"backward takes {parameters}, where PyTorch takes inputs as well; both gradients came: {x.grad}, {y.grad}")
holds = len(parameters) > 2
if holds:
    print("holds")
sys.exit(not holds)
