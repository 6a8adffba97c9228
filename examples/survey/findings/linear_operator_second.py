"""linear_operator 0.6.1: second derivatives of three Functions are wrong or 0, without a word."""

import torch
from linear_operator import settings, to_linear_operator
from linear_operator.functions._inv_quad import InvQuad
from linear_operator.functions._pivoted_cholesky import PivotedCholesky

A = torch.tensor([[4.0, 1.0, 0.0], [1.0, 3.0, 1.0], [0.0, 1.0, 5.0]], dtype=torch.float64)
RIGHT = torch.tensor([[1.0], [2.0], [3.0]], dtype=torch.float64)
TREE = to_linear_operator(A).representation_tree()
STEP = 1e-5


def of_inv_quad_logdet(a):
    """The quadratic form that InvQuadLogdet computes beside the determinant."""
    with settings.max_cholesky_size(1):
        return to_linear_operator(a).inv_quad_logdet(RIGHT, logdet=True)[0]


def first(f, scale):
    scale = torch.tensor(scale, dtype=torch.float64, requires_grad=True)
    weights = torch.tensor(1.0, dtype=torch.float64, requires_grad=True)
    return scale, torch.autograd.grad((f(A * scale) * weights).sum(), scale, create_graph=True)[0]


bad = 0
for name, f in (
    ("InvQuad", lambda a: InvQuad.apply(TREE, RIGHT, a)),
    ("InvQuadLogdet", of_inv_quad_logdet),
    ("PivotedCholesky", lambda a: PivotedCholesky.apply(TREE, 3, None, a)[0]),
):
    scale, gradient = first(f, 1.0)
    second = None
    if gradient.requires_grad:
        second = torch.autograd.grad(gradient, scale, allow_unused=True)[0]
    got = 0.0 if second is None else second.item()
    expected = (first(f, 1 + STEP)[1] - first(f, 1 - STEP)[1]).item() / (2 * STEP)
    print(f"{name}: second derivative by the scale {got}, by differences {expected}")
    bad += abs(got - expected) > 1e-4
raise SystemExit(bad > 0)
