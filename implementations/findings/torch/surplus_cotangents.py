"""Cotangents beyond the number of outputs are dropped silently.

There should be an error, as for too few. The documentation says that grad_outputs "should be a sequence of length
matching output", which requires it of the caller and does not promise a check.
https://docs.pytorch.org/docs/stable/generated/torch.autograd.grad.html
"""

import torch

x = torch.ones(2, requires_grad=True)
wrong = 0
for name in ("grad", "backward"):
    call = {
        "grad": lambda: torch.autograd.grad([2 * x], [x], [torch.ones(2), torch.ones(7)]),
        "backward": lambda: torch.autograd.backward([2 * x], [torch.ones(2), torch.ones(7)]),
    }[name]
    try:
        call()
    except (RuntimeError, ValueError, TypeError) as error:
        print(f"{name} raises {error!r}")
    else:
        wrong = 1
        print(f"{name} of one output takes two cotangents, but should raise an error")
if wrong:
    raise SystemExit(1)
print("holds")
