"""functional_call puts a value for a parametrized tensor through the parametrization.

torch.func.functional_call: "If the module has active parametrizations, passing a value in the
parameter_and_buffer_dicts argument with the name set to the regular parameter name will completely disable the
parametrization."
https://docs.pytorch.org/docs/stable/generated/torch.func.functional_call.html
"""

import torch
from torch.func import functional_call
from torch.nn.utils import parametrize


class Clamped(torch.nn.Module):
    def forward(self, x):
        return x.clamp(0, 1)

    def right_inverse(self, x):
        return x.clone()


module = torch.nn.Linear(1, 1, bias=False)
parametrize.register_parametrization(module, "weight", Clamped())
y = functional_call(module, {"weight": torch.tensor([[5.0]])}, torch.ones(1))
if y.item() != 5:
    print(f"with the weight 5 the module gives {y.item()}, but should give 5")
    raise SystemExit(1)
print("holds")
