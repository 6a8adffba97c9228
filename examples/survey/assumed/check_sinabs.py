"""The Functions of sinabs, with what their code suggests of the arguments.

Copy this file, correct the copy, and run check on it: the next check of sinabs writes this file anew.
"""

from autograd_conformance import Declaration

from sinabs.activation.quantize import Quantize, StochasticRounding

# sinabs.activation.quantize:StochasticRounding.
stochastic_rounding = Declaration(
    StochasticRounding,
    "float[...]",
    surrogate=True,  # a guess: outputs are constant nearly everywhere, and gradients are not 0
    stochastic=True,  # results change with the seed of random numbers
)
