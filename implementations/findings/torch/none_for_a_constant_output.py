"""autograd.grad and backward refuse None as the cotangent of an output that does not require grad.

They should accept it. The documentation of both says: "None values can be specified for scalar Tensors or ones that
don't require grad."
https://docs.pytorch.org/docs/stable/generated/torch.autograd.grad.html
"""

import torch

wrong = 0
for name in ("grad", "backward"):
    x = torch.ones(2, requires_grad=True)
    outputs, cotangents = (2 * x, torch.ones(3)), (torch.ones(2), None)
    try:
        if name == "grad":
            got = torch.autograd.grad(outputs, x, cotangents)[0]
        else:
            torch.autograd.backward(outputs, cotangents)
            got = x.grad
        got = got.tolist()
    except RuntimeError as error:
        got = repr(error)
    if got != [2, 2]:
        wrong = 1
        print(f"{name} gives {got}, but should give [2.0, 2.0]")
if wrong:
    raise SystemExit(1)
print("holds")
