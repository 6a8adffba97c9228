"""The Functions of entmax, with what their code suggests of the arguments.

Copy this file, correct the copy, and run check on it: the next check of entmax writes this file anew.
"""

from autograd_conformance import Declaration

from entmax.activations import Entmax15Function, SparsemaxFunction
from entmax.losses import (
    Entmax15LossFunction,
    EntmaxBisectLossFunction,
    NormmaxBisectLossFunction,
    SparsemaxBisectLossFunction,
    SparsemaxLossFunction,
)
from entmax.root_finding import (
    BudgetBisectFunction,
    EntmaxBisectFunction,
    NormmaxBisectFunction,
    SparsemaxBisectFunction,
)

# entmax.activations:SparsemaxFunction.
sparsemax_function = Declaration(
    SparsemaxFunction,
    "float[n,m]",
    "-1 | -2",
    "None",
)

# entmax.activations:Entmax15Function.
entmax15_function = Declaration(
    Entmax15Function,
    "float[n,m]",
    "0",
    "None",
)

# entmax.losses:SparsemaxLossFunction.
sparsemax_loss_function = Declaration(
    SparsemaxLossFunction,
    "float[n,m]",
    "int[n](0..m-1)",
    "None",
)

# entmax.losses:SparsemaxBisectLossFunction.
sparsemax_bisect_loss_function = Declaration(
    SparsemaxBisectLossFunction,
    "float[n,m]",
    "int[n](0..m-1)",
    "50 | 100",
)

# entmax.losses:Entmax15LossFunction.
entmax15_loss_function = Declaration(
    Entmax15LossFunction,
    "float[n,m]",
    "int[n](0..m-1)",
    "None",
)

# entmax.losses:EntmaxBisectLossFunction.
entmax_bisect_loss_function = Declaration(
    EntmaxBisectLossFunction,
    "float[n,m]",
    "int[n](0..m-1)",
    "1.5 | 3.0",
    "50 | 100",
)

# entmax.losses:NormmaxBisectLossFunction.
normmax_bisect_loss_function = Declaration(
    NormmaxBisectLossFunction,
    "float[n,m]",
    "int[n](0..m-1)",
    "2 | 4",
    "50 | 100",
)

# entmax.root_finding:EntmaxBisectFunction.
entmax_bisect_function = Declaration(
    EntmaxBisectFunction,
    "float[n,m]",
    "1.5 | 3.0",
    "-1 | -2",
    "50 | 100",
    "bool",
)

# entmax.root_finding:SparsemaxBisectFunction.
sparsemax_bisect_function = Declaration(
    SparsemaxBisectFunction,
    "float[n,m]",
    "-1 | -2",
    "50 | 100",
    "bool",
)

# entmax.root_finding:NormmaxBisectFunction.
normmax_bisect_function = Declaration(
    NormmaxBisectFunction,
    "float[n,m]",
    "2 | 4",
    "-1 | -2",
    "50 | 100",
)

# entmax.root_finding:BudgetBisectFunction.
budget_bisect_function = Declaration(
    BudgetBisectFunction,
    "float[n,m,k]",
    "2 | 4",
    "-1 | -2",
    "50 | 100",
)
