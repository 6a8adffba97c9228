"""torch.func.jacfwd and hessian give zeros for argnums that count from the end, where jacrev and grad are right.

They should give the Jacobian, or raise as for argnums that are too large. The documentation of jacfwd says: "Computes
the Jacobian of func with respect to the arg(s) at index argnum using forward-mode autodiff"
https://docs.pytorch.org/docs/stable/generated/torch.func.jacfwd.html
"""

import torch

x = torch.tensor(3.0)
expected = torch.func.jacrev(torch.square, argnums=-1)(x).item()
got = torch.func.jacfwd(torch.square, argnums=-1)(x).item()
if got != expected:
    print(f"jacfwd gives {got}, but should give {expected}, as jacrev does")
    raise SystemExit(1)
print("holds")
