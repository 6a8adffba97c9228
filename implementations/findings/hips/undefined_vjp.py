"""The error for an undefined VJP always names argument 0, and is a KeyError for three arguments.

A difference and no broken promise: autograd/core.py means to raise NotImplementedError with the number of the argument.
"""

import sys

from autograd import make_vjp
from autograd.extend import defvjp, primitive

f = primitive(lambda a, b, c: a * b * c)
defvjp(f, lambda ans, a, b, c: lambda g: g * b * c, argnums=[0])


def said(argnums):
    try:
        return make_vjp(f, argnums)(1.0, 2.0, 3.0)
    except (NotImplementedError, KeyError) as error:
        return f"{type(error).__name__}: {error}"


wrong = False
for argnums, number in ((1, "1"), (2, "2"), ((0, 1, 2), "")):
    came = said(argnums)
    print(f"argnums {argnums}: got: {came}; expected: NotImplementedError: VJP wrt argnum {number}")
    wrong = wrong or not came.startswith("NotImplementedError") or number not in came
if wrong:
    sys.exit(1)
print("holds")
