"""A backward pass always runs through the complete graph: there is no way to request only some gradients.

A difference from PyTorch, whose backward(inputs=...) runs only the nodes that these inputs need.
"""

import inspect
import sys

import mygrad as mg

x, y = mg.tensor([1.0, 2.0]), mg.tensor([3.0, 4.0])
(x * y).backward()
parameters = list(inspect.signature(mg.Tensor.backward).parameters)
print(f"backward takes {parameters}, where PyTorch also takes inputs; both gradients: {x.grad}, {y.grad}")
holds = len(parameters) > 2
if holds:
    print("holds")
sys.exit(not holds)
