"""The Functions of spikingjelly, with what their code suggests of the arguments.

Copy this file, correct the copy, and run check on it: the next check of spikingjelly writes this file anew.
"""

from autograd_conformance import Declaration

from spikingjelly._ops.surrogate import _SurrogateSpike
from spikingjelly.activation_based.lava_exchange import LeakyIntegratorStep
from spikingjelly.activation_based.layer.online_learning import ReplaceforGrad
from spikingjelly.activation_based.memopt.checkpointing import _GradientToken
from spikingjelly.activation_based.model.spike_dhs import dSpike
from spikingjelly.activation_based.quantize import (
    CeilATGF,
    ClampATGF,
    FloorATGF,
    KBitQuantizeATGF,
    MultiLevelSpikeCountATGF,
    RoundATGF,
    StepQuantizeATGF,
)
from spikingjelly.activation_based.surrogate import (
    atan,
    deterministic_pass,
    erf,
    fake_numerical_gradient,
    leaky_k_relu,
    log_tailed_relu,
    nonzero_sign_log_abs,
    piecewise_exp,
    piecewise_leaky_relu,
    piecewise_quadratic,
    poisson_pass,
    q_pseudo_spike,
    rect,
    s2nn,
    sigmoid,
    soft_sign,
    squarewave_fourier_series,
    super_spike,
)
from spikingjelly.timing_based.functional import _SRMInputs

# spikingjelly.activation_based.quantize:RoundATGF.
round_atgf = Declaration(
    RoundATGF,
    "float[...]",
    surrogate=True,  # a guess: outputs are constant nearly everywhere, and gradients are not 0
)

# spikingjelly.activation_based.quantize:CeilATGF.
ceil_atgf = Declaration(
    CeilATGF,
    "float[...]",
    surrogate=True,  # a guess: outputs are constant nearly everywhere, and gradients are not 0
)

# spikingjelly.activation_based.quantize:FloorATGF.
floor_atgf = Declaration(
    FloorATGF,
    "float[...]",
    surrogate=True,  # a guess: outputs are constant nearly everywhere, and gradients are not 0
)

# spikingjelly.activation_based.quantize:ClampATGF.
clamp_atgf = Declaration(
    ClampATGF,
    "float[...]",
    "0.5 | 2.0",
    "0.5 | 2.0",
)

# spikingjelly.activation_based.surrogate:piecewise_quadratic.
piecewise_quadratic_ = Declaration(
    piecewise_quadratic,
    "float[...]",
    "1 | 2",
    surrogate=True,  # a guess: outputs are constant nearly everywhere, and gradients are not 0
)

# spikingjelly.activation_based.surrogate:piecewise_exp.
piecewise_exp_ = Declaration(
    piecewise_exp,
    "float[...]",
    "1 | 2",
    surrogate=True,  # a guess: outputs are constant nearly everywhere, and gradients are not 0
)

# spikingjelly.activation_based.surrogate:soft_sign.
soft_sign_ = Declaration(
    soft_sign,
    "float[...]",
    "1 | 2",
    surrogate=True,  # a guess: outputs are constant nearly everywhere, and gradients are not 0
)

# spikingjelly.activation_based.surrogate:super_spike.
super_spike_ = Declaration(
    super_spike,
    "float[...]",
    "1 | 2",
    surrogate=True,  # a guess: outputs are constant nearly everywhere, and gradients are not 0
)

# spikingjelly.activation_based.surrogate:nonzero_sign_log_abs.
nonzero_sign_log_abs_ = Declaration(
    nonzero_sign_log_abs,
    "float[...]",
    "1 | 2",
    surrogate=True,  # a guess: outputs are constant nearly everywhere, and gradients are not 0
)

# spikingjelly.activation_based.surrogate:piecewise_leaky_relu.
piecewise_leaky_relu_ = Declaration(
    piecewise_leaky_relu,
    "float[...]",
    "1 | 2",
    "0.01 | 0.02",
    surrogate=True,  # a guess: outputs are constant nearly everywhere, and gradients are not 0
)

# spikingjelly.activation_based.surrogate:squarewave_fourier_series.
squarewave_fourier_series_ = Declaration(
    squarewave_fourier_series,
    "float[...]",
    "1 | 2",
    "0.5 | 2.0",
    surrogate=True,  # a guess: outputs are constant nearly everywhere, and gradients are not 0
)

# spikingjelly.activation_based.surrogate:s2nn.
s2nn_ = Declaration(
    s2nn,
    "float[...]",
    "0.5 | 2.0",
    "0.5 | 2.0",
    surrogate=True,  # a guess: outputs are constant nearly everywhere, and gradients are not 0
)

# spikingjelly.activation_based.surrogate:q_pseudo_spike.
q_pseudo_spike_ = Declaration(
    q_pseudo_spike,
    "float[...]",
    "0.5 | 2.0",
    surrogate=True,  # a guess: outputs are constant nearly everywhere, and gradients are not 0
)

# spikingjelly.activation_based.surrogate:leaky_k_relu.
leaky_k_relu_ = Declaration(
    leaky_k_relu,
    "float[...]",
    "1 | 2",
    "1 | 2",
    surrogate=True,  # a guess: outputs are constant nearly everywhere, and gradients are not 0
)

# spikingjelly.activation_based.surrogate:fake_numerical_gradient.
fake_numerical_gradient_ = Declaration(
    fake_numerical_gradient,
    "float[...]",
    "1 | 2",
    surrogate=True,  # a guess: outputs are constant nearly everywhere, and gradients are not 0
)

# spikingjelly.activation_based.surrogate:log_tailed_relu.
log_tailed_relu_ = Declaration(
    log_tailed_relu,
    "float[...]",
    "1 | 2",
    surrogate=True,  # a guess: outputs are constant nearly everywhere, and gradients are not 0
)

# spikingjelly.timing_based.functional:_SRMInputs.
_srminputs = Declaration(
    _SRMInputs,
    "float[...]",
    "float[...]",
)

# spikingjelly.activation_based.layer.online_learning:ReplaceforGrad.
replacefor_grad = Declaration(
    ReplaceforGrad,
    "float[...]",
    "float[...]",
)

# spikingjelly.activation_based.memopt.checkpointing:_GradientToken.
_gradient_token = Declaration(
    _GradientToken,
    "float[...]",
    surrogate=True,  # a guess: outputs are constant nearly everywhere, and gradients are not 0
)

# spikingjelly.activation_based.model.spike_dhs:dSpike.
d_spike = Declaration(
    dSpike,
    "float[...]",
    "0.5 | 2.0",
    surrogate=True,  # a guess: outputs are constant nearly everywhere, and gradients are not 0
)
