"""An operation on constants is recorded: its output is a constant, but has a creator.

A difference from PyTorch, where an output that does not require grad has no grad_fn.
"""

import sys

import mygrad as mg

y = mg.tensor([1.0, 2.0], constant=True) * 2
print(f"constant: {y.constant}; creator: {y.creator}, where PyTorch has None")
if y.creator is None:
    print("holds")
sys.exit(y.creator is not None)
