"""The Functions that were called by: python -m pytest ...

Each declaration was drafted from these calls. Read it, correct it, and run: autograd-conformance check check_entmax.py
A guess is what never varied while it was recorded. Arguments are described in docs/checking-your-function.md.
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

# entmax.losses:SparsemaxLossFunction: 3296 calls, of 4 kinds.
sparsemax_loss_function = Declaration(
    SparsemaxLossFunction,
    "float[n,m]",  # X: float64, requires grad
    "int[n](0..m-1)",  # target: int64
    "None | 5",  # k: 2 values
)

# entmax.activations:SparsemaxFunction: 3676 calls, of 17 kinds.
sparsemax_function = Declaration(
    SparsemaxFunction,
    "float[...,n]",  # X: float32, float64, requires grad at times, strided
    "-1 | 0 | 1 | 2",  # dim: 4 values
    "None | 5 | 3 | 512",  # k: 4 values
)

# entmax.losses:Entmax15LossFunction: 3296 calls, of 4 kinds.
entmax15_loss_function = Declaration(
    Entmax15LossFunction,
    "float[n,m]",  # X: float64, requires grad
    "int[n](0..m-1)",  # target: int64
    "100 | 5",  # k: 2 values
)

# entmax.activations:Entmax15Function: 3671 calls, of 16 kinds.
entmax15_function = Declaration(
    Entmax15Function,
    "float[...,n]",  # X: float32, float64, requires grad at times, strided
    "-1 | 0 | 1 | 2",  # dim: 4 values
    "100 | 5 | 3 | None | 512",  # k: 5 values
)

# entmax.losses:SparsemaxBisectLossFunction: 1648 calls, of 2 kinds.
sparsemax_bisect_loss_function = Declaration(
    SparsemaxBisectLossFunction,
    "float[n,m]",  # X: float64, requires grad
    "int[n](0..m-1)",  # target: int64
    "50",  # n_iter: never varied
)

# entmax.root_finding:SparsemaxBisectFunction: 1703 calls, of 8 kinds.
# Guess, of which forward takes others, too: the shape was always [n,m].
sparsemax_bisect_function = Declaration(
    SparsemaxBisectFunction,
    "float[...,n]",  # X: float32, float64, requires grad at times, strided
    "-1",  # dim: never varied
    "50",  # n_iter: never varied
    "True",  # ensure_sum_one: never varied
)

# entmax.losses:EntmaxBisectLossFunction: 1648 calls, of 2 kinds.
entmax_bisect_loss_function = Declaration(
    EntmaxBisectLossFunction,
    "float[n,m]",  # X: float64, requires grad
    "int[n](0..m-1)",  # target: int64
    "1.5",  # alpha: never varied
    "50",  # n_iter: never varied
)

# entmax.root_finding:EntmaxBisectFunction: 1819 calls, of 171 kinds.
# Guess, of which forward takes others, too: the shape was always [n,m].
entmax_bisect_function = Declaration(
    EntmaxBisectFunction,
    "float[...,n]",  # X: float32, float64, requires grad at times, strided
    "float(0.07381253875515105..2.5493350407868056)",  # alpha: 162 values
    "-1",  # dim: never varied
    "50",  # n_iter: never varied
    "True",  # ensure_sum_one: never varied
)

# entmax.root_finding:EntmaxBisectFunction: 628 calls, of 8 kinds.
# Forward refuses 14 of 16 simple calls, one of them with: RuntimeError: The expanded size of the tensor (1) must match the existing size (2) at non-singleton dimension 3. Target sizes: [1, 1, 1, 1]. Tensor sizes: [1, 1, 1, 2]
entmax_bisect_function_2 = Declaration(
    EntmaxBisectFunction,
    "float[n,m,k,l]",  # X: float64, requires grad at times
    "float[p,q,r,s]",  # alpha: float64, requires grad at times
    "2 | 0 | 1 | 3",  # dim: 4 values
    "50",  # n_iter: never varied
    "True",  # ensure_sum_one: never varied
    name="EntmaxBisectFunction_2",
)

# entmax.root_finding:EntmaxBisectFunction: 364 calls, all of one kind: nothing shows what may vary.
# Guess, of which forward takes others, too: n was always 4, m was always 6.
entmax_bisect_function_3 = Declaration(
    EntmaxBisectFunction,
    "float[n,m]",  # X: float64, requires grad
    "float[]",  # alpha: float64, requires grad
    "-1",  # dim: never varied
    "50",  # n_iter: never varied
    "True",  # ensure_sum_one: never varied
    name="EntmaxBisectFunction_3",
)

# entmax.losses:NormmaxBisectLossFunction: 1648 calls, of 2 kinds.
normmax_bisect_loss_function = Declaration(
    NormmaxBisectLossFunction,
    "float[n,m]",  # X: float64, requires grad
    "int[n](0..m-1)",  # target: int64
    "2",  # alpha: never varied
    "50",  # n_iter: never varied
)

# entmax.root_finding:NormmaxBisectFunction: 1650 calls, of 4 kinds.
normmax_bisect_function = Declaration(
    NormmaxBisectFunction,
    "float[...,n]",  # X: float32, float64, requires grad at times
    "2 | 1000",  # alpha: 2 values
    "-1 | 0",  # dim: 2 values
    "50",  # n_iter: never varied
)

# entmax.root_finding:NormmaxBisectFunction: 250 calls, all of one kind: nothing shows what may vary.
# Guess, of which forward takes others, too: n was always 4.
# Lengths that are numbers never varied, and forward refuses others.
normmax_bisect_function_2 = Declaration(
    NormmaxBisectFunction,
    "float[n,6]",  # X: float64, requires grad
    "float[] constant",  # alpha: float64, never requires grad; backward returns None for it
    "-1",  # dim: never varied
    "50",  # n_iter: never varied
    name="NormmaxBisectFunction_2",
)

# entmax.root_finding:NormmaxBisectFunction: 100 calls, all of one kind: nothing shows what may vary.
# Lengths that are numbers never varied, and forward refuses others.
normmax_bisect_function_3 = Declaration(
    NormmaxBisectFunction,
    "float[4,6]",  # X: float64, requires grad
    "float[4,1] constant",  # alpha: float64, never requires grad; backward returns None for it
    "-1",  # dim: never varied
    "50",  # n_iter: never varied
    name="NormmaxBisectFunction_3",
)

# entmax.root_finding:BudgetBisectFunction: 350 calls, all of one kind: nothing shows what may vary.
# Guess, of which forward takes others, too: n was always 4, m was always 6.
budget_bisect_function = Declaration(
    BudgetBisectFunction,
    "float[n,m]",  # X: float64, requires grad
    "float[] binary",  # budget: float64, never requires grad, 0 or 1
    "-1",  # dim: never varied
    "50",  # n_iter: never varied
)

# entmax.root_finding:BudgetBisectFunction: 7 calls, of 3 kinds.
# Guess, of which forward takes others, too: the shape was always [n].
budget_bisect_function_2 = Declaration(
    BudgetBisectFunction,
    "float[...,n]",  # X: float32, never requires grad
    "1 | 2 | 3",  # budget: 3 values
    "0",  # dim: never varied
    "50",  # n_iter: never varied
    name="BudgetBisectFunction_2",
)
