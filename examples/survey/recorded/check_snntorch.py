"""The Functions that were called by: python -m pytest ...

Each declaration was drafted from these calls. Read it, correct it, and run: autograd-conformance check check_snntorch.py
A guess is what never varied while it was recorded. Arguments are described in docs/checking-your-function.md.
"""

import torch

from autograd_conformance import Declaration

from snntorch.functional.loss import SpikeTime
from snntorch.surrogate import ATan

# snntorch.surrogate:ATan: 189 calls, of 13 kinds.
atan = Declaration(
    ATan,
    "float[...]",  # input_: float32, requires grad at times, strided
    "2.0",  # alpha: never varied
    surrogate=True,  # a guess: outputs are constant nearly everywhere, and gradients are not 0
)

# snntorch.functional.loss:SpikeTime.FirstSpike: 8 calls, all of one kind: nothing shows what may vary.
# Guess, of which forward takes others, too: n was always 3.
first_spike = Declaration(
    SpikeTime.FirstSpike,
    "float[n,n,n] binary",  # spk_rec: float32, never requires grad, 0 or 1
    torch.device(type='cpu'),  # device: never varied
)
