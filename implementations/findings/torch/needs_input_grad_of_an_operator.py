"""ctx.needs_input_grad of an operator has one flag too many in setup_context, and none for a default in backward.

It should have one for each input in both. The documentation of register_autograd says: "The ctx object is the same ctx
object used by torch.autograd.Function. The semantics of backward_fn are the same as
torch.autograd.Function.backward()."
https://docs.pytorch.org/docs/stable/library.html#torch.library.register_autograd
"""

import torch
from torch import Tensor

seen = {}


@torch.library.custom_op("needs_input_grad_of_an_operator::scale", mutates_args=())
def scale(x: Tensor, y: Tensor, factor: float = 2.0) -> Tensor:
    return factor * x + y


def setup_context(ctx, inputs, output):
    seen["in setup_context"] = ctx.needs_input_grad


def backward(ctx, g):
    seen["in backward"] = ctx.needs_input_grad
    return 2 * g, g, None


scale.register_autograd(backward, setup_context=setup_context)
x, y = torch.ones(2, requires_grad=True), torch.ones(2)
said = []
for given in ((x, y), (x, y, 3.0)):
    torch.autograd.grad(scale(*given).sum(), x)
    said += [f"{where} with {len(given)} of 3 given: {flags}" for where, flags in seen.items()]
wrong = [line for line in said if not line.endswith("(True, False, False)")]
if wrong:
    print(*wrong, "but should be (True, False, False)", sep="\n")
    raise SystemExit(1)
print("holds")
