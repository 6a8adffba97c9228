"""The Functions that were called by: python -m pytest ...

Each declaration was drafted from these calls. Read it, correct it, and run: autograd-conformance check check_torchdiffeq.py
A guess is what never varied while it was recorded. Arguments are described in docs/checking-your-function.md.
"""

from autograd_conformance import Declaration

from torchdiffeq._impl.misc import _StitchGradient
from torchdiffeq._impl.rk_common import _UncheckedAssign

# torchdiffeq._impl.rk_common:_UncheckedAssign: 35573 calls, of 75 kinds.
# Forward refuses 6 of 16 simple calls, one of them with: IndexError: index 1 is out of bounds for dimension 1 with size 1
_unchecked_assign = Declaration(
    _UncheckedAssign,
    "float[n,m]",  # scratch: float32, float64, requires grad at times
    "float[n]",  # value: float32, float64, requires grad at times, strided
    (..., 1),  # index: the first of 75
)

# torchdiffeq._impl.rk_common:_UncheckedAssign: 17388 calls, of 16 kinds.
# Guess, of which forward takes others, too: n was always 2.
# Lengths that are numbers never varied, and forward refuses others.
_unchecked_assign_2 = Declaration(
    _UncheckedAssign,
    "float[1,n,7]",  # scratch: float32, requires grad at times
    "float[1,n]",  # value: float32, requires grad at times, strided
    (..., 1),  # index: the first of 16
    name="_UncheckedAssign_2",
)

# torchdiffeq._impl.rk_common:_UncheckedAssign: 9008 calls, of 61 kinds.
_unchecked_assign_3 = Declaration(
    _UncheckedAssign,
    "float[n]",  # scratch: float64, requires grad at times
    "float[]",  # value: float64, requires grad at times
    (..., 0),  # index: the first of 61
    name="_UncheckedAssign_3",
)

# torchdiffeq._impl.misc:_StitchGradient: 17786 calls, of 4 kinds.
# Guess, of which forward takes others, too: the shape was always [].
_stitch_gradient = Declaration(
    _StitchGradient,
    "float[...]",  # x1: float32, float64, requires grad at times
    "float[...] constant",  # out: float32, float64, never requires grad; backward returns None for it
    surrogate=True,  # a guess: outputs are constant nearly everywhere, and gradients are not 0
)
