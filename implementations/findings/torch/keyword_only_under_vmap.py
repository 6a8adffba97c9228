"""Under vmap, with a generated rule, keyword-only arguments are dropped: forward runs with its defaults.

There should be an error, as under other transforms, or the right result: "vmap(func) returns a new function that maps
func over some dimension of the inputs."
https://docs.pytorch.org/docs/stable/generated/torch.func.vmap.html
"""

import torch


class Scale(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x, *, scale=3):
        return x * scale

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass


try:
    got = torch.vmap(lambda x: Scale.apply(x, scale=2))(torch.ones(2)).tolist()
except TypeError as error:
    print(f"holds: {error!r}")
    raise SystemExit(0) from None
if got != [2, 2]:
    print(f"vmap of apply(x, scale=2) gives {got}, but should give [2, 2] or a TypeError")
    raise SystemExit(1)
print("holds")
