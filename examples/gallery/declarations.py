"""Custom Functions of ten published packages, declared as their users would: `autograd-conformance check` reads this.

`requirements.txt` says which versions; what is found is in `docs/checking-your-function-gallery.md`.
"""

from __future__ import annotations

import torch
from brevitas.ops.autograd_ste_ops import AbsBinarySignGradFn
from entmax.root_finding import BudgetBisectFunction, EntmaxBisectFunction
from gpytorch.functions import RBFCovariance
from linear_operator import to_linear_operator
from linear_operator.functions._solve import Solve
from memcnn import AdditiveCoupling, InvertibleModuleWrapper
from pypose import se3
from snntorch.surrogate import Sigmoid
from torch_struct.semirings.sparse_max import _SimplexProject
from torchdiffeq import odeint_adjoint

from autograd_conformance.harness.check import Declaration, Factory

# alpha = 1 divides by 0: near it, rounding grows.
entmax = Declaration(
    EntmaxBisectFunction, "float[b,n]", "float[b,1](1.25..1.75)", "-1", "50",
    sizes={"b": (1, 2), "n": (2, 3)}, dtypes=("float64", "float32"), conditioning=4,
)  # fmt: skip

# The budget has to be smaller than the last dimension.
budget = Declaration(
    BudgetBisectFunction, "float[b,h,n]", "2", "-1", "50",
    sizes={"b": (1, 2), "h": (1, 2), "n": (3, 4)}, dtypes=("float64", "float32"),
)  # fmt: skip

# Spikes are steps: their gradient is that of a sigmoid, on purpose.
spikes = Declaration(Sigmoid, "float[...]", "25", soft=lambda membrane, slope: torch.sigmoid(slope * membrane))


def decay(y0, t, rate):
    return odeint_adjoint(lambda _, y: -rate * y, y0, t, method="rk4", adjoint_params=(rate,))


# The adjoint is the gradient of the exact solution, and so as far off as the solver is.
adjoint = Declaration(
    decay, "float[n]", "float[k] sorted", "float[](0.25..0.5)",
    sizes={"n": (1, 2, 3), "k": (2, 3)}, dtypes=("float64", "float32"), conditioning=40_000,
)  # fmt: skip


def solve(matrix, right):
    return Solve.apply(to_linear_operator(matrix).representation_tree(), False, right, matrix)


# What is observed is not a parameter. Where it requires grad as well, second derivatives are refused.
solved = Declaration(solve, "float[n,n] spd", "float[n] constant")


def squared_distances(a, b):
    return (a.unsqueeze(-2) - b.unsqueeze(-3)).pow(2).sum(-1)


# The points must not require grad, as the package says.
rbf = Declaration(RBFCovariance, "float[n,d] constant", "float[m,d] constant", "float[1,1] positive", squared_distances)


def move(shift, turn, point):
    return se3(torch.cat([shift, turn], -1)).Exp().Act(point)


# A Lie group's gradient is right only together with an action. Refinements start with small turns.
pose = Declaration(
    move, "float[b,3]", "float[b,3](-1e-5..1e-5)", "float[3]", sizes={"b": (1, 2)}, dtypes=("float64", "float32")
)


def coupling(seed):
    torch.manual_seed(seed)
    layers = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Tanh())
    return InvertibleModuleWrapper(AdditiveCoupling(layers, split_dim=1)).double()


# It says that it works with .backward() only, and it empties its input: x * 1 keeps that of the caller.
invertible = Declaration(
    lambda module, x: module(x * 1), Factory(coupling), "float[b,4]",
    name="InvertibleModuleWrapper", sizes={"b": (1, 2, 3)}, dtypes=("float64",), backward_only=True,
    single_backward=True,
)  # fmt: skip

simplex = Declaration(_SimplexProject, "float[...,n]", "-1")

sign = Declaration(AbsBinarySignGradFn, "float[...]")
