"""The Functions that were called by: python -m pytest ...

Each declaration was drafted from these calls. Read it, correct it, and run: autograd-conformance check check_sinabs.py
A guess is what never varied while it was recorded. Arguments are described in docs/checking-your-function.md.
"""

from autograd_conformance import Declaration, Factory

from sinabs.activation.quantize import Quantize
from sinabs.activation.spike_generation import MaxSpikeInner, MultiSpike, SingleSpike
from sinabs.activation.surrogate_gradient_fn import SingleExponential

# sinabs.activation.spike_generation:SingleSpike: 1300 calls, of 8 kinds.
single_spike = Declaration(
    SingleSpike,
    "float[...]",  # v_mem: float32, requires grad
    "float[...]",  # spike_threshold: float32, requires grad at times
    Factory(lambda seed: SingleExponential(grad_width=0.5, grad_scale=1.0)),  # surrogate_grad_fn: as in the first call
    surrogate=True,  # a guess: outputs are constant nearly everywhere, and gradients are not 0
)

# sinabs.activation.spike_generation:SingleSpike: 200 calls, of 2 kinds.
# Guess, of which forward takes others, too: n was always 10, m was always 2, k was always 7.
single_spike_2 = Declaration(
    SingleSpike,
    "float[n,m,k,k]",  # v_mem: float32, requires grad at times
    "float[] binary",  # spike_threshold: float32, never requires grad, 0 or 1
    Factory(lambda seed: SingleExponential(grad_width=0.5, grad_scale=1.0)),  # surrogate_grad_fn: as in the first call
    name="SingleSpike_2",
    surrogate=True,  # a guess: outputs are constant nearly everywhere, and gradients are not 0
)

# sinabs.activation.spike_generation:SingleSpike: 3 calls, of 3 kinds.
# Guess, of which forward takes others, too: the shape was always [n].
single_spike_3 = Declaration(
    SingleSpike,
    "float[...]",  # v_mem: float32, requires grad
    "1.0",  # spike_threshold: never varied
    Factory(lambda seed: SingleExponential(grad_width=0.5, grad_scale=1.0)),  # surrogate_grad_fn: as in the first call
    name="SingleSpike_3",
    surrogate=True,  # a guess: outputs are constant nearly everywhere, and gradients are not 0
)

# sinabs.activation.spike_generation:MultiSpike: 1302 calls, of 3 kinds.
# Guess, of which forward takes others, too: n was always 10.
# Lengths that are numbers never varied, and forward refuses others.
# Forward refuses 5 of 8 simple calls, one of them with: it returns numbers that are not finite, or above 1e+09, for Call('MultiSpike', args=(Tensor((1, 2, 7, 7), requires_grad=True, fill='dense'), Tensor((), fill='dense'), 0), cotangents=(Cotangent(),))
multi_spike = Declaration(
    MultiSpike,
    "float[n,2,7,7]",  # v_mem: float32, requires grad at times
    "float[] binary",  # spike_threshold: float32, never requires grad, 0 or 1
    Factory(lambda seed: SingleExponential(grad_width=0.5, grad_scale=1.0)),  # surrogate_grad_fn: as in the first call
    surrogate=True,  # a guess: outputs are constant nearly everywhere, and gradients are not 0
)

# sinabs.activation.spike_generation:MultiSpike: 571 calls, of 9 kinds.
multi_spike_2 = Declaration(
    MultiSpike,
    "float[n,m]",  # v_mem: float32, requires grad at times
    "float[] constant",  # spike_threshold: float32, never requires grad; backward returns None for it
    Factory(lambda seed: SingleExponential(grad_width=0.5, grad_scale=1.0)),  # surrogate_grad_fn: as in the first call
    name="MultiSpike_2",
    surrogate=True,  # a guess: outputs are constant nearly everywhere, and gradients are not 0
)

# sinabs.activation.spike_generation:MultiSpike: 200 calls, of 3 kinds.
# Guess, of which forward takes others, too: n was always 10.
# Lengths that are numbers never varied, and forward refuses others.
# Forward refuses 4 of 8 simple calls, one of them with: it returns numbers that are not finite, or above 1e+09, for Call('MultiSpike', args=(Tensor((1, 2, 1), requires_grad=True, fill='ramp'), Tensor((), fill='ramp'), 0), cotangents=(Cotangent(),))
multi_spike_3 = Declaration(
    MultiSpike,
    "float[n,2,n]",  # v_mem: float32, requires grad at times
    "float[] binary",  # spike_threshold: float32, never requires grad, 0 or 1
    Factory(lambda seed: SingleExponential(grad_width=0.5, grad_scale=1.0)),  # surrogate_grad_fn: as in the first call
    name="MultiSpike_3",
    surrogate=True,  # a guess: outputs are constant nearly everywhere, and gradients are not 0
)

# sinabs.activation.spike_generation:MaxSpikeInner: 200 calls, of 2 kinds.
# Guess, of which forward takes others, too: n was always 10, m was always 2, k was always 7.
max_spike_inner = Declaration(
    MaxSpikeInner,
    "float[n,m,k,k] positive",  # v_mem: float32, requires grad at times
    "3",  # max_num_spikes_per_bin: never varied
    "float[] binary",  # spike_threshold: float32, never requires grad, 0 or 1
    Factory(lambda seed: SingleExponential(grad_width=0.5, grad_scale=1.0)),  # surrogate_grad_fn: as in the first call
    surrogate=True,  # a guess: outputs are constant nearly everywhere, and gradients are not 0
)

# sinabs.activation.spike_generation:MaxSpikeInner: called once.
# Guess, of which forward takes others, too: the shape was always [n].
max_spike_inner_2 = Declaration(
    MaxSpikeInner,
    "float[...]",  # v_mem: float32, requires grad
    "4",  # max_num_spikes_per_bin: never varied
    "1.0",  # spike_threshold: never varied
    Factory(lambda seed: SingleExponential(grad_width=0.5, grad_scale=1.0)),  # surrogate_grad_fn: as in the first call
    name="MaxSpikeInner_2",
    surrogate=True,  # a guess: outputs are constant nearly everywhere, and gradients are not 0
)

# sinabs.activation.quantize:Quantize: 2 calls, of 2 kinds.
# Guess, of which forward takes others, too: the shape was always [n].
quantize = Declaration(
    Quantize,
    "float[...]",  # inp: float32, requires grad at times
    surrogate=True,  # a guess: outputs are constant nearly everywhere, and gradients are not 0
)
