"""The Functions that were called by: python -m pytest ...

Each declaration was drafted from these calls. Read it, correct it, and run: autograd-conformance check norse2.py
A guess is what never varied while it was recorded. Arguments are described in docs/checking-your-function.md.
"""

import torch

from autograd_conformance import Declaration, Factory

from norse.torch.functional.adjoint.lif_adjoint import (
    LIFAdjointFunction,
    LIFFeedForwardAdjointFunction,
)
from norse.torch.functional.adjoint.lif_refrac_adjoint import (
    LIFAdjointRefracFeedForwardFunction,
    LIFAdjointRefracFunction,
)
from norse.torch.functional.adjoint.lsnn_adjoint import (
    LSNNAdjointFunction,
    LSNNFeedForwardAdjointFunction,
)
from norse.torch.functional.lif import LIFParameters
from norse.torch.functional.lif_refrac import LIFRefracParameters
from norse.torch.functional.lsnn import LSNNParameters
from norse.torch.functional.spikes_to_times_decoder import ToSpikeTimes
from norse.torch.functional.superspike import SuperSpike
from norse.torch.functional.threshold import (
    CircDist,
    HeaviCirc,
    HeaviErfc,
    HeaviTanh,
    Logistic,
    Triangle,
)

# norse.torch.functional.adjoint.lif_adjoint:LIFAdjointFunction: 99 calls, all of one kind: nothing shows what may vary.
# Guess, of which forward takes others, too: n was always 10.
lifadjoint_function = Declaration(
    LIFAdjointFunction,
    "float[1,n] binary",  # input_tensor: float32, never requires grad, 0 or 1
    "float[1,n] binary",  # z: float32, never requires grad, 0 or 1
    "float[1,n]",  # v: float32, never requires grad
    "float[1,n]",  # i: float32, never requires grad
    "float[n,n]",  # input_weights: float32, never requires grad
    "float[n,n]",  # recurrent_weights: float32, never requires grad
    Factory(lambda seed: LIFParameters(tau_syn_inv=torch.tensor(200.0, dtype=torch.float32), tau_mem_inv=torch.tensor(100.0, dtype=torch.float32), v_leak=torch.tensor(0.0, dtype=torch.float32), v_th=torch.tensor(1.0, dtype=torch.float32), v_reset=torch.tensor(0.0, dtype=torch.float32), method='super', alpha=torch.tensor(100.0, dtype=torch.float32))),  # p: as in the first call
    "0.001",  # dt: never varied
)

# norse.torch.functional.adjoint.lif_adjoint:LIFAdjointFunction: called once.
# Guess, of which forward takes others, too: n was always 10.
lifadjoint_function_2 = Declaration(
    LIFAdjointFunction,
    "float[1,n] binary",  # input_tensor: float32, never requires grad, 0 or 1
    "float[n] binary",  # z: float32, never requires grad, 0 or 1
    "float[n] binary",  # v: float32, never requires grad, 0 or 1
    "float[n] binary",  # i: float32, never requires grad, 0 or 1
    "float[n,n]",  # input_weights: float32, never requires grad
    "float[n,n]",  # recurrent_weights: float32, never requires grad
    Factory(lambda seed: LIFParameters(tau_syn_inv=torch.tensor(200.0, dtype=torch.float32), tau_mem_inv=torch.tensor(100.0, dtype=torch.float32), v_leak=torch.tensor(0.0, dtype=torch.float32), v_th=torch.tensor(1.0, dtype=torch.float32), v_reset=torch.tensor(0.0, dtype=torch.float32), method='super', alpha=torch.tensor(100.0, dtype=torch.float32))),  # p: as in the first call
    "0.001",  # dt: never varied
    name="LIFAdjointFunction_2",
)

# norse.torch.functional.superspike:SuperSpike: 19880 calls, of 11 kinds.
super_spike = Declaration(
    SuperSpike,
    "float[n]",  # input_tensor: float32, requires grad at times
    "float[] constant",  # alpha: float32, never requires grad; backward returns None for it
    surrogate=True,  # a guess: outputs are constant nearly everywhere, and gradients are not 0
)

# norse.torch.functional.superspike:SuperSpike: 2913 calls, of 34 kinds.
super_spike_2 = Declaration(
    SuperSpike,
    "float[n,m]",  # input_tensor: float32, requires grad at times
    "float[] constant",  # alpha: float32, never requires grad; backward returns None for it
    name="SuperSpike_2",
    surrogate=True,  # a guess: outputs are constant nearly everywhere, and gradients are not 0
)

# norse.torch.functional.superspike:SuperSpike: 184 calls, of 22 kinds.
super_spike_3 = Declaration(
    SuperSpike,
    "float[n,m,k,l]",  # input_tensor: float32, requires grad
    "float[] constant",  # alpha: float32, never requires grad; backward returns None for it
    name="SuperSpike_3",
    surrogate=True,  # a guess: outputs are constant nearly everywhere, and gradients are not 0
)

# norse.torch.functional.adjoint.lif_adjoint:LIFFeedForwardAdjointFunction: 99 calls, all of one kind: nothing shows what may vary.
# Guess, of which forward takes others, too: the shape was always [1,n].
liffeed_forward_adjoint_function = Declaration(
    LIFFeedForwardAdjointFunction,
    "float[...] binary",  # input: float32, never requires grad, 0 or 1
    "float[...]",  # v: float32, never requires grad
    "float[...]",  # i: float32, never requires grad
    Factory(lambda seed: LIFParameters(tau_syn_inv=torch.tensor(200.0, dtype=torch.float32), tau_mem_inv=torch.tensor(100.0, dtype=torch.float32), v_leak=torch.tensor(0.0, dtype=torch.float32), v_th=torch.tensor(1.0, dtype=torch.float32), v_reset=torch.tensor(0.0, dtype=torch.float32), method='super', alpha=torch.tensor(100.0, dtype=torch.float32))),  # p: as in the first call
    "0.001",  # dt: never varied
)

# norse.torch.functional.adjoint.lif_adjoint:LIFFeedForwardAdjointFunction: called once.
# Guess, of which forward takes others, too: n was always 10.
liffeed_forward_adjoint_function_2 = Declaration(
    LIFFeedForwardAdjointFunction,
    "float[1,n] binary",  # input: float32, never requires grad, 0 or 1
    "float[n] binary",  # v: float32, never requires grad, 0 or 1
    "float[n] binary",  # i: float32, never requires grad, 0 or 1
    Factory(lambda seed: LIFParameters(tau_syn_inv=torch.tensor(200.0, dtype=torch.float32), tau_mem_inv=torch.tensor(100.0, dtype=torch.float32), v_leak=torch.tensor(0.0, dtype=torch.float32), v_th=torch.tensor(1.0, dtype=torch.float32), v_reset=torch.tensor(0.0, dtype=torch.float32), method='super', alpha=torch.tensor(100.0, dtype=torch.float32))),  # p: as in the first call
    "0.001",  # dt: never varied
    name="LIFFeedForwardAdjointFunction_2",
)

# norse.torch.functional.adjoint.lif_refrac_adjoint:LIFAdjointRefracFunction: 99 calls, all of one kind: nothing shows what may vary.
# Guess, of which forward takes others, too: n was always 10.
lifadjoint_refrac_function = Declaration(
    LIFAdjointRefracFunction,
    "float[1,n] binary",  # input_tensor: float32, never requires grad, 0 or 1
    "float[1,n] binary",  # z: float32, never requires grad, 0 or 1
    "float[1,n]",  # v: float32, never requires grad
    "float[1,n]",  # i: float32, never requires grad
    "float[1,n]",  # rho: float32, never requires grad
    "float[n,n]",  # input_weights: float32, never requires grad
    "float[n,n]",  # recurrent_weights: float32, never requires grad
    Factory(lambda seed: LIFRefracParameters(lif=LIFParameters(tau_syn_inv=torch.tensor(200.0, dtype=torch.float32), tau_mem_inv=torch.tensor(100.0, dtype=torch.float32), v_leak=torch.tensor(0.0, dtype=torch.float32), v_th=torch.tensor(1.0, dtype=torch.float32), v_reset=torch.tensor(0.0, dtype=torch.float32), method='super', alpha=torch.tensor(100.0, dtype=torch.float32)), rho_reset=torch.tensor(5.0, dtype=torch.float32))),  # p: as in the first call
    "0.001",  # dt: never varied
)

# norse.torch.functional.adjoint.lif_refrac_adjoint:LIFAdjointRefracFunction: called once.
# Guess, of which forward takes others, too: n was always 10.
lifadjoint_refrac_function_2 = Declaration(
    LIFAdjointRefracFunction,
    "float[1,n] binary",  # input_tensor: float32, never requires grad, 0 or 1
    "float[n] binary",  # z: float32, never requires grad, 0 or 1
    "float[n] binary",  # v: float32, never requires grad, 0 or 1
    "float[n] binary",  # i: float32, never requires grad, 0 or 1
    "float[n]",  # rho: float32, never requires grad
    "float[n,n]",  # input_weights: float32, never requires grad
    "float[n,n]",  # recurrent_weights: float32, never requires grad
    Factory(lambda seed: LIFRefracParameters(lif=LIFParameters(tau_syn_inv=torch.tensor(200.0, dtype=torch.float32), tau_mem_inv=torch.tensor(100.0, dtype=torch.float32), v_leak=torch.tensor(0.0, dtype=torch.float32), v_th=torch.tensor(1.0, dtype=torch.float32), v_reset=torch.tensor(0.0, dtype=torch.float32), method='super', alpha=torch.tensor(100.0, dtype=torch.float32)), rho_reset=torch.tensor(5.0, dtype=torch.float32))),  # p: as in the first call
    "0.001",  # dt: never varied
    name="LIFAdjointRefracFunction_2",
)

# norse.torch.functional.adjoint.lif_refrac_adjoint:LIFAdjointRefracFeedForwardFunction: 198 calls, all of one kind: nothing shows what may vary.
# Guess, of which forward takes others, too: the shape was always [1,n].
lifadjoint_refrac_feed_forward_function = Declaration(
    LIFAdjointRefracFeedForwardFunction,
    "float[...] binary",  # input: float32, never requires grad, 0 or 1
    "float[...] binary",  # v: float32, never requires grad, 0 or 1
    "float[...]",  # i: float32, never requires grad
    "float[...]",  # rho: float32, never requires grad
    Factory(lambda seed: LIFRefracParameters(lif=LIFParameters(tau_syn_inv=torch.tensor(200.0, dtype=torch.float32), tau_mem_inv=torch.tensor(100.0, dtype=torch.float32), v_leak=torch.tensor(0.0, dtype=torch.float32), v_th=torch.tensor(1.0, dtype=torch.float32), v_reset=torch.tensor(0.0, dtype=torch.float32), method='super', alpha=torch.tensor(100.0, dtype=torch.float32)), rho_reset=torch.tensor(5.0, dtype=torch.float32))),  # p: as in the first call
    "0.001",  # dt: never varied
)

# norse.torch.functional.adjoint.lif_refrac_adjoint:LIFAdjointRefracFeedForwardFunction: 2 calls, all of one kind: nothing shows what may vary.
# Guess, of which forward takes others, too: n was always 10.
lifadjoint_refrac_feed_forward_function_2 = Declaration(
    LIFAdjointRefracFeedForwardFunction,
    "float[1,n] binary",  # input: float32, never requires grad, 0 or 1
    "float[n] binary",  # v: float32, never requires grad, 0 or 1
    "float[n] binary",  # i: float32, never requires grad, 0 or 1
    "float[n]",  # rho: float32, never requires grad
    Factory(lambda seed: LIFRefracParameters(lif=LIFParameters(tau_syn_inv=torch.tensor(200.0, dtype=torch.float32), tau_mem_inv=torch.tensor(100.0, dtype=torch.float32), v_leak=torch.tensor(0.0, dtype=torch.float32), v_th=torch.tensor(1.0, dtype=torch.float32), v_reset=torch.tensor(0.0, dtype=torch.float32), method='super', alpha=torch.tensor(100.0, dtype=torch.float32)), rho_reset=torch.tensor(5.0, dtype=torch.float32))),  # p: as in the first call
    "0.001",  # dt: never varied
    name="LIFAdjointRefracFeedForwardFunction_2",
)

# norse.torch.functional.adjoint.lsnn_adjoint:LSNNAdjointFunction: 100 calls, all of one kind: nothing shows what may vary.
# Guess, of which forward takes others, too: n was always 10.
lsnnadjoint_function = Declaration(
    LSNNAdjointFunction,
    "float[n] binary",  # input_tensor: float32, never requires grad, 0 or 1
    "float[n] binary",  # z: float32, never requires grad, 0 or 1
    "float[n]",  # v: float32, never requires grad
    "float[n]",  # i: float32, never requires grad
    "float[n]",  # b: float32, never requires grad
    "float[n,n]",  # input_weights: float32, never requires grad
    "float[n,n]",  # recurrent_weights: float32, never requires grad
    Factory(lambda seed: LSNNParameters(tau_syn_inv=torch.tensor(200.0, dtype=torch.float32), tau_mem_inv=torch.tensor(100.0, dtype=torch.float32), tau_adapt_inv=torch.tensor(0.0012499999720603228, dtype=torch.float32), v_leak=torch.tensor(0.0, dtype=torch.float32), v_th=torch.tensor(1.0, dtype=torch.float32), v_reset=torch.tensor(0.0, dtype=torch.float32), beta=torch.tensor(1.7999999523162842, dtype=torch.float32), method='super', alpha=100.0)),  # p: as in the first call
    "0.001",  # dt: never varied
)

# norse.torch.functional.adjoint.lsnn_adjoint:LSNNFeedForwardAdjointFunction: 100 calls, all of one kind: nothing shows what may vary.
# Guess, of which forward takes others, too: the shape was always [n].
lsnnfeed_forward_adjoint_function = Declaration(
    LSNNFeedForwardAdjointFunction,
    "float[...] binary",  # input: float32, never requires grad, 0 or 1
    "float[...]",  # v: float32, never requires grad
    "float[...]",  # i: float32, never requires grad
    "float[...]",  # b: float32, never requires grad
    Factory(lambda seed: LSNNParameters(tau_syn_inv=torch.tensor(200.0, dtype=torch.float32), tau_mem_inv=torch.tensor(100.0, dtype=torch.float32), tau_adapt_inv=torch.tensor(0.0012499999720603228, dtype=torch.float32), v_leak=torch.tensor(0.0, dtype=torch.float32), v_th=torch.tensor(1.0, dtype=torch.float32), v_reset=torch.tensor(0.0, dtype=torch.float32), beta=torch.tensor(1.7999999523162842, dtype=torch.float32), method='super', alpha=100.0)),  # p: as in the first call
    "0.001",  # dt: never varied
)

# norse.torch.functional.spikes_to_times_decoder:ToSpikeTimes: 12 calls, of 8 kinds.
# Guess, of which forward takes others, too: the shape was always [n,m,k].
# Forward refuses 3 of 16 simple calls, one of them with: IndexError: tuple index out of range
to_spike_times = Declaration(
    ToSpikeTimes,
    "float[...]",  # spike_input: float32, requires grad at times
    "10 | 1 | 0 | 2 | 3 | 4",  # spike_count: 6 values
)

# norse.torch.functional.spikes_to_times_decoder:ToSpikeTimes: 4 calls, of 3 kinds.
# Guess, of which forward takes others, too: n was always 10.
# Forward refuses 4 of 16 simple calls, one of them with: it returns numbers that are not finite, or above 1e+09, for Call('ToSpikeTimes', args=(Tensor((3, 1, 2), requires_grad=True, fill='ramp'), Tensor((), dtype='int64')), cotangents=(Cotangent(),), seed=4)
to_spike_times_2 = Declaration(
    ToSpikeTimes,
    "float[n,m,k]",  # spike_input: float32, requires grad at times
    "int[](1..15)",  # spike_count: int64
    name="ToSpikeTimes_2",
)

# norse.torch.functional.threshold:HeaviErfc: 10 calls, of 4 kinds.
# Guess, of which forward takes others, too: the shape was always [n].
heavi_erfc = Declaration(
    HeaviErfc,
    "float[...]",  # x: float32, requires grad at times
    "10.0 | 100.0 | 0.1",  # k: 3 values
    surrogate=True,  # a guess: outputs are constant nearly everywhere, and gradients are not 0
)

# norse.torch.functional.threshold:Logistic: 3 calls, of 2 kinds.
# Guess, of which forward takes others, too: the shape was always [n].
logistic = Declaration(
    Logistic,
    "float[...]",  # x: float32, requires grad at times
    "0.1",  # k: never varied
    surrogate=True,  # a guess: outputs are constant nearly everywhere, and gradients are not 0
    stochastic=True,  # results change with the seed of random numbers
)

# norse.torch.functional.threshold:CircDist: 3 calls, of 2 kinds.
# Guess, of which forward takes others, too: the shape was always [n].
circ_dist = Declaration(
    CircDist,
    "float[...]",  # x: float32, requires grad at times
    "0.1",  # alpha: never varied
    surrogate=True,  # a guess: outputs are constant nearly everywhere, and gradients are not 0
    stochastic=True,  # results change with the seed of random numbers
)

# norse.torch.functional.threshold:HeaviTanh: 9 calls, of 2 kinds.
# Guess, of which forward takes others, too: the shape was always [n].
heavi_tanh = Declaration(
    HeaviTanh,
    "float[...]",  # x: float32, requires grad at times
    "10.0",  # k: never varied
    surrogate=True,  # a guess: outputs are constant nearly everywhere, and gradients are not 0
)

# norse.torch.functional.threshold:Triangle: 9 calls, of 2 kinds.
# Guess, of which forward takes others, too: the shape was always [n].
triangle = Declaration(
    Triangle,
    "float[...]",  # x: float32, requires grad at times
    "10.0",  # alpha: never varied
    surrogate=True,  # a guess: outputs are constant nearly everywhere, and gradients are not 0
)

# norse.torch.functional.threshold:HeaviCirc: 9 calls, of 2 kinds.
# Guess, of which forward takes others, too: the shape was always [n].
heavi_circ = Declaration(
    HeaviCirc,
    "float[...]",  # x: float32, requires grad at times
    "10.0",  # alpha: never varied
    surrogate=True,  # a guess: outputs are constant nearly everywhere, and gradients are not 0
)
