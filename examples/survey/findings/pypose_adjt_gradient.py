"""pypose 0.9.5: the gradient of AdjT by its vector is wrong for SE3 and Sim3: of another matrix."""

import pypose as pp
import torch
from pypose.lietensor.operation import SE3_AdjTXa, Sim3_AdjTXa, SO3_AdjTXa

torch.manual_seed(0)
bad = 0
for function, group, length in (
    (SO3_AdjTXa, pp.randn_SO3, 3),
    (SE3_AdjTXa, pp.randn_SE3, 6),
    (Sim3_AdjTXa, pp.randn_Sim3, 7),
):
    element = group(1, dtype=torch.float64).tensor()
    vector = torch.randn(1, length, dtype=torch.float64, requires_grad=True)
    weights = torch.randn(1, length, dtype=torch.float64)
    got = torch.autograd.grad(function.apply(element, vector), vector, weights)[0][0]
    # The function is linear in the vector.
    columns = [function.apply(element, row[None]) for row in torch.eye(length, dtype=torch.float64)]
    expected = torch.stack([(column * weights).sum() for column in columns])
    print(f"{function.__name__}: gradient by the vector {got.tolist()}")
    print(f"    by differences {expected.tolist()}")
    bad += not torch.allclose(got, expected)
raise SystemExit(bad > 0)
