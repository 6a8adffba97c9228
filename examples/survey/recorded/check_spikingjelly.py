"""The Functions that were called by: python -m pytest ...

Each declaration was drafted from these calls. Read it, correct it, and run: autograd-conformance check check_spikingjelly.py
A guess is what never varied while it was recorded. Arguments are described in docs/checking-your-function.md.
"""

from autograd_conformance import Declaration

from spikingjelly._ops.surrogate import _SurrogateSpike
from spikingjelly.activation_based.lava_exchange import LeakyIntegratorStep
from spikingjelly.activation_based.neuron.dsr import DSRIFNode, DSRLIFNode
from spikingjelly.activation_based.quantize import (
    KBitQuantizeATGF,
    MultiLevelSpikeCountATGF,
    StepQuantizeATGF,
)
from spikingjelly.activation_based.surrogate import (
    atan,
    deterministic_pass,
    erf,
    poisson_pass,
    rect,
    sigmoid,
)

# spikingjelly.activation_based.surrogate:sigmoid: 240 calls, of 18 kinds.
sigmoid_ = Declaration(
    sigmoid,
    "float[...]",  # x: float32, float64, requires grad at times
    "4.0",  # alpha: never varied
    surrogate=True,  # a guess: outputs are constant nearly everywhere, and gradients are not 0
)

# spikingjelly.activation_based.surrogate:poisson_pass: called once.
# Guess, of which forward takes others, too: the shape was always [n,1,m].
poisson_pass_ = Declaration(
    poisson_pass,
    "float[...] unit",  # x: float32, requires grad, expanded
    surrogate=True,  # a guess: outputs are constant nearly everywhere, and gradients are not 0
    stochastic=True,  # results change with the seed of random numbers
)

# spikingjelly.activation_based.surrogate:deterministic_pass: 149 calls, of 12 kinds.
deterministic_pass_ = Declaration(
    deterministic_pass,
    "float[...]",  # x: float32, requires grad at times
    surrogate=True,  # a guess: outputs are constant nearly everywhere, and gradients are not 0
)

# spikingjelly._ops.surrogate:_SurrogateSpike: 201 calls, of 15 kinds.
_surrogate_spike = Declaration(
    _SurrogateSpike,
    "float[...]",  # x: float32, requires grad at times
    "4.0",  # alpha: never varied
    "0",  # surrogate_id: never varied
    surrogate=True,  # a guess: outputs are constant nearly everywhere, and gradients are not 0
)

# spikingjelly.activation_based.quantize:MultiLevelSpikeCountATGF: 13 calls, of 6 kinds.
# Guess, of which forward takes others, too: the shape was always [n,m].
multi_level_spike_count_atgf = Declaration(
    MultiLevelSpikeCountATGF,
    "float[...]",  # x: float32, requires grad at times
    "4",  # max_spike_count: never varied
    "0.0 | -0.5",  # grad_min: 2 values
    "4.0 | 4.5",  # grad_max: 2 values
    surrogate=True,  # a guess: outputs are constant nearly everywhere, and gradients are not 0
)

# spikingjelly.activation_based.quantize:StepQuantizeATGF: 17 calls, of 2 kinds.
step_quantize_atgf = Declaration(
    StepQuantizeATGF,
    "float[...]",  # x: float32, requires grad at times
    "1.0 | 0.25",  # step: 2 values
    surrogate=True,  # a guess: outputs are constant nearly everywhere, and gradients are not 0
)

# spikingjelly.activation_based.lava_exchange:LeakyIntegratorStep: 16 calls, of 2 kinds.
# Guess, of which forward takes others, too: n was always 2.
leaky_integrator_step = Declaration(
    LeakyIntegratorStep,
    "float[n,m]",  # x: float32, never requires grad
    "float[]",  # decay: float32, never requires grad
    "float[n,m]",  # state: float32, never requires grad
    "4096",  # w_scale: never varied
)

# spikingjelly.activation_based.surrogate:atan: 9 calls, of 2 kinds.
atan_ = Declaration(
    atan,
    "float[...]",  # x: float32, requires grad
    "2.0",  # alpha: never varied
    surrogate=True,  # a guess: outputs are constant nearly everywhere, and gradients are not 0
)

# spikingjelly.activation_based.neuron.dsr:DSRIFNode.DSRIFFunction: called once.
# Guess, of which forward takes others, too: m was always 2, k was always 3.
# Lengths that are numbers never varied, and forward refuses others.
dsriffunction = Declaration(
    DSRIFNode.DSRIFFunction,
    "float[4,m,k]",  # inp: float32, requires grad
    "4",  # T: never varied
    "float[]",  # v_threshold: float32, requires grad
    "0.5",  # alpha: never varied
    "1.0",  # v_threshold_grad_scaling: never varied
)

# spikingjelly.activation_based.neuron.dsr:DSRLIFNode.DSRLIFFunction: called once.
# Guess, of which forward takes others, too: m was always 2, k was always 3.
# Lengths that are numbers never varied, and forward refuses others.
dsrliffunction = Declaration(
    DSRLIFNode.DSRLIFFunction,
    "float[4,m,k]",  # inp: float32, requires grad
    "4",  # T: never varied
    "float[]",  # v_threshold: float32, requires grad
    "2.0",  # tau: never varied
    "0.05",  # delta_t: never varied
    "0.3",  # alpha: never varied
    "1.0",  # v_threshold_grad_scaling: never varied
)

# spikingjelly.activation_based.surrogate:rect: 28 calls, of 5 kinds.
# Guess, of which forward takes others, too: the shape was always [n,m].
rect_ = Declaration(
    rect,
    "float[...]",  # x: float32, requires grad at times
    "1.0",  # alpha: never varied
    surrogate=True,  # a guess: outputs are constant nearly everywhere, and gradients are not 0
)

# spikingjelly.activation_based.quantize:KBitQuantizeATGF: called once.
# Guess, of which forward takes others, too: the shape was always [n].
kbit_quantize_atgf = Declaration(
    KBitQuantizeATGF,
    "float[...]",  # x: float32, requires grad
    "2",  # k: never varied
    surrogate=True,  # a guess: outputs are constant nearly everywhere, and gradients are not 0
)

# spikingjelly.activation_based.surrogate:erf: 120 calls, of 2 kinds.
# Guess, of which forward takes others, too: the shape was always [n,m].
erf_ = Declaration(
    erf,
    "float[...]",  # x: float32, requires grad
    "2.0",  # alpha: never varied
    surrogate=True,  # a guess: outputs are constant nearly everywhere, and gradients are not 0
)
