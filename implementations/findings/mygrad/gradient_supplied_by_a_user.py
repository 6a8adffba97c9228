"""backward refuses an invalid gradient with NumPy's errors instead of InvalidGradient.

MyGrad's errors.py, InvalidGradient: "An invalid gradient (i.e. a non-numeric or non-array-like object) was produced by
an operation or was supplied by a user."
"""

import sys

import mygrad as mg
from mygrad.errors import InvalidGradient

wrong = False
for given in ("text", object(), {"a": 1.0}):
    try:
        mg.tensor([1.0, 2.0]).backward(given)
        got = "no error"
    except InvalidGradient:
        continue
    except (TypeError, ValueError) as raised:
        got = f"{type(raised).__name__}: {raised}"
    print(f"backward({given!r}): {got}, but should be InvalidGradient")
    wrong = True
if not wrong:
    print("holds")
sys.exit(wrong)
