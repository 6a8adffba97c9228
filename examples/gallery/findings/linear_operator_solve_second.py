"""linear_operator 0.6.1: Solve's second derivative is wrong with a vector on the right or a matrix on the left."""

import torch
from linear_operator import to_linear_operator
from linear_operator.functions._solve import Solve

A = torch.tensor([[4.0, 1.0, 0.0], [1.0, 3.0, 1.0], [0.0, 1.0, 5.0]], dtype=torch.float64)
RIGHT = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)
LEFT = torch.tensor([[1.0, -1.0, 2.0]], dtype=torch.float64)
TREE = to_linear_operator(A).representation_tree()


def second(f):
    scale = torch.tensor(1.0, dtype=torch.float64, requires_grad=True)
    first = torch.autograd.grad((f(A * scale) ** 2).sum(), scale, create_graph=True)[0]
    return torch.autograd.grad(first, scale)[0].item()


bad = 0
for name, got, expected in (
    ("a matrix", lambda a: Solve.apply(TREE, False, RIGHT[:, None], a), lambda a: torch.linalg.solve(a, RIGHT)),
    ("a vector", lambda a: Solve.apply(TREE, False, RIGHT, a), lambda a: torch.linalg.solve(a, RIGHT)),
    (
        "a matrix, and one on the left",
        lambda a: Solve.apply(TREE, True, LEFT, RIGHT[:, None], a),
        lambda a: LEFT @ torch.linalg.solve(a, RIGHT),
    ),
):
    print(f"by the scale, with {name}: Solve {second(got):.6f}, torch.linalg.solve {second(expected):.6f}")
    bad += abs(second(got) - second(expected)) > 1e-6
raise SystemExit(bad > 0)
