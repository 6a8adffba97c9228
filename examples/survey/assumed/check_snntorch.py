"""The Functions of snntorch, with what their code suggests of the arguments.

Copy this file, correct the copy, and run check on it: the next check of snntorch writes this file anew.
"""

from autograd_conformance import Declaration

from snntorch.functional.quant import StateQuant
from snntorch.surrogate import (
    ATan,
    FastSigmoid,
    Heaviside,
    LeakySpikeOperator,
    Sigmoid,
    SparseFastSigmoid,
    SpikeRateEscape,
    StochasticSpikeOperator,
    StraightThroughEstimator,
    Triangular,
)

# snntorch.surrogate:StraightThroughEstimator.
straight_through_estimator = Declaration(
    StraightThroughEstimator,
    "float[...]",
    surrogate=True,  # a guess: outputs are constant nearly everywhere, and gradients are not 0
)

# snntorch.surrogate:Triangular.
triangular = Declaration(
    Triangular,
    "float[...]",
    "1 | 2",
    surrogate=True,  # a guess: outputs are constant nearly everywhere, and gradients are not 0
)

# snntorch.surrogate:FastSigmoid.
fast_sigmoid = Declaration(
    FastSigmoid,
    "float[...]",
    "1 | 2",
    surrogate=True,  # a guess: outputs are constant nearly everywhere, and gradients are not 0
)

# snntorch.surrogate:Heaviside.
heaviside = Declaration(
    Heaviside,
    "float[...]",
    surrogate=True,  # a guess: outputs are constant nearly everywhere, and gradients are not 0
)

# snntorch.surrogate:Sigmoid.
sigmoid = Declaration(
    Sigmoid,
    "float[...]",
    "1 | 2",
    surrogate=True,  # a guess: outputs are constant nearly everywhere, and gradients are not 0
)

# snntorch.surrogate:SpikeRateEscape.
spike_rate_escape = Declaration(
    SpikeRateEscape,
    "float[...]",
    "1 | 2",
    "1 | 2",
    surrogate=True,  # a guess: outputs are constant nearly everywhere, and gradients are not 0
)

# snntorch.surrogate:StochasticSpikeOperator.
stochastic_spike_operator = Declaration(
    StochasticSpikeOperator,
    "float[...]",
    "1 | 2",
    "1 | 2",
    surrogate=True,  # a guess: outputs are constant nearly everywhere, and gradients are not 0
)

# snntorch.surrogate:LeakySpikeOperator.
leaky_spike_operator = Declaration(
    LeakySpikeOperator,
    "float[...]",
    "1 | 2",
)

# snntorch.surrogate:SparseFastSigmoid.
sparse_fast_sigmoid = Declaration(
    SparseFastSigmoid,
    "float[...]",
    "1 | 2",
    "1 | 2",
    surrogate=True,  # a guess: outputs are constant nearly everywhere, and gradients are not 0
)

# snntorch.functional.quant:StateQuant.
state_quant = Declaration(
    StateQuant,
    "float[n,m]",
    "float[m] constant",  # levels: backward returns None for it
    surrogate=True,  # a guess: outputs are constant nearly everywhere, and gradients are not 0
)
