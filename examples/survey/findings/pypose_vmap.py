"""pypose 0.9.5: vmap raises for many Functions or their gradients, although they say generate_vmap_rule = True."""

import pypose as pp
import torch
from pypose.lietensor import operation


def raised(function, arguments):
    try:
        function(*arguments)
    except RuntimeError as error:
        return str(error)


torch.manual_seed(0)
bad = 0
for group, drawn, length in (
    ("SO3", pp.randn_SO3, 3),
    ("SE3", pp.randn_SE3, 6),
    ("RxSO3", pp.randn_RxSO3, 4),
    ("Sim3", pp.randn_Sim3, 7),
):
    element, other = (drawn(2, dtype=torch.float64).tensor() for _ in range(2))
    algebra = torch.randn(2, length, dtype=torch.float64)
    points = torch.randn(2, 4, dtype=torch.float64)
    for name, arguments in (
        (f"{group[:-3].lower()}{group[-3:].lower()}_Exp", (algebra,)),
        (f"{group}_Log", (element,)),
        (f"{group}_Inv", (element,)),
        (f"{group}_Mul", (element, other)),
        (f"{group}_Act", (element, points[:, :3])),
        (f"{group}_Act4", (element, points)),
        (f"{group}_AdjXa", (element, algebra)),
        (f"{group}_AdjTXa", (element, algebra)),
    ):
        function = getattr(operation, name)
        assert function.generate_vmap_rule
        for what, batched in (
            ("vmap", torch.func.vmap(function.apply)),
            ("vmap of the gradient", torch.func.vmap(torch.func.grad(lambda *a, f=function: f.apply(*a).sum()))),
        ):
            error = raised(batched, arguments)
            if error:
                print(f"{name}: {what} raises: {error[:90]} ...")
                bad += 1
print(bad, "of 64 raise")
raise SystemExit(bad > 0)
