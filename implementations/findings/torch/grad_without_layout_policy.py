"""Under enforce_grad_layout_policy(False) the second backward pass through a sum raises.

The first one makes an expanded gradient the .grad of the leaf. "Tensor.grad": "The attribute will then contain the
gradients computed and future calls to backward() will accumulate (add) gradients into it."
https://docs.pytorch.org/docs/stable/generated/torch.Tensor.grad.html
"""

import torch

x = torch.ones(2, requires_grad=True)
with torch.autograd.grad_mode.enforce_grad_layout_policy(False):
    x.sum().backward()
    try:
        x.sum().backward()
    except RuntimeError as error:
        print(f"the second pass raises {error}, but should add to .grad")
        raise SystemExit(1) from None
print("holds")
