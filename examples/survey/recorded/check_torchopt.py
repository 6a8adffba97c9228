"""The Functions that were called by: python -m pytest ...

Each declaration was drafted from these calls. Read it, correct it, and run: autograd-conformance check check_torchopt.py
A guess is what never varied while it was recorded. Arguments are described in docs/checking-your-function.md.
"""

import torch

from autograd_conformance import Declaration, Factory

from torchopt.accelerated_op.adam_op import AdamOp

# torchopt.accelerated_op.adam_op:AdamOp.MuOp: 4806 calls, of 4 kinds.
mu_op = Declaration(
    AdamOp.MuOp,
    "float[...]",  # args: float64, never requires grad
    "float[...]",  # kwargs: float64, never requires grad
    "0.9",  # argument2: never varied
)

# torchopt.accelerated_op.adam_op:AdamOp.NuOp: 4806 calls, of 4 kinds.
nu_op = Declaration(
    AdamOp.NuOp,
    "float[...]",  # args: float64, never requires grad
    "float[...]",  # kwargs: float64, never requires grad
    "0.999",  # argument2: never varied
)

# torchopt.accelerated_op.adam_op:AdamOp.UpdatesOp: 4806 calls, of 4 kinds.
updates_op = Declaration(
    AdamOp.UpdatesOp,
    "float[...]",  # args: float64, never requires grad
    "float[...] unit",  # kwargs: float64, never requires grad
    Factory(lambda seed: (0.9, 0.999, 1e-08, 0.0, torch.tensor(1, dtype=torch.int64))),  # argument2: as in the first call
)
