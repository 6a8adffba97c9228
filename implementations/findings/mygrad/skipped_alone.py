"""A pass ends in AssertionError if SkipGradient is raised for the only use of a tensor.

A difference and no broken promise: MyGrad speaks of gradients that another use of the tensor has added already.
"""

import sys

import mygrad as mg
from mygrad._utils import SkipGradient
from mygrad.operation_base import Operation


class Doubled(Operation):
    def __call__(self, a):
        self.variables = (a,)
        return 2 * a.data

    def backward_var(self, grad, index, **kwargs):
        raise SkipGradient


x = mg.tensor(1.0)
try:
    mg.execute_op(Doubled, x).backward()
except AssertionError as raised:
    print(f"got: AssertionError: {str(raised).splitlines()[0]}")
    print("expected: no error, and no gradient")
    sys.exit(1)
print("holds")
