"""Under no_autodiff an output of floats is not a constant, though nothing can be back-propagated through it.

A difference from PyTorch, where the results of operations under no_grad do not require grad.
"""

import sys

import mygrad as mg

constants = []
for constant in (True, False):
    x = mg.tensor([1.0, 2.0], constant=constant)
    with mg.no_autodiff:
        y = x * 2
    constants.append(y.constant)
    print(f"input constant: {constant}; output constant: {y.constant}, creator: {y.creator}; it could be a constant")
if all(constants):
    print("holds")
sys.exit(not all(constants))
