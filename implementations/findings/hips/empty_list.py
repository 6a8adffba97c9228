"""list() and tuple() of autograd.builtins raise TypeError.

"An alternative is to use the `list`, `dict`, and `tuple` classes in `autograd.builtins`, which should work just like
the Python builtins" (docs/tutorial.md, Supported and unsupported parts of numpy/scipy)
"""

import sys

from autograd import builtins

wrong = False
for name, expected in {"list": [], "tuple": (), "dict": {}}.items():
    try:
        came = getattr(builtins, name)()
    except TypeError as error:
        came = f"TypeError: {error}"
    print(f"{name}: got: {came}; expected: {expected}")
    wrong = wrong or came != expected
if wrong:
    sys.exit(1)
print("holds")
