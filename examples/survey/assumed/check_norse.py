"""The Functions of norse, with what their code suggests of the arguments.

Copy this file, correct the copy, and run check on it: the next check of norse writes this file anew.
"""

import torch

from autograd_conformance import Declaration, Factory

from norse.torch.functional.adjoint.lif_adjoint import (
    LIFAdjointFunction,
    LIFFeedForwardAdjointFunction,
    LIFFeedForwardSparseAdjointFunction,
    LIFSparseAdjointFunction,
)
from norse.torch.functional.adjoint.lif_refrac_adjoint import LIFAdjointRefracFeedForwardFunction
from norse.torch.functional.adjoint.lsnn_adjoint import (
    LSNNAdjointFunction,
    LSNNFeedForwardAdjointFunction,
)
from norse.torch.functional.lif import LIFParameters
from norse.torch.functional.lif_refrac import LIFRefracParameters
from norse.torch.functional.lsnn import LSNNParameters
from norse.torch.functional.superspike import SuperSpike
from norse.torch.functional.threshold import (
    CircDist,
    HeaviCirc,
    HeaviErfc,
    HeaviTanh,
    Logistic,
    Triangle,
)

# norse.torch.functional.adjoint.lif_adjoint:LIFSparseAdjointFunction.
lifsparse_adjoint_function = Declaration(
    LIFSparseAdjointFunction,
    "float[n,n]",
    "float[n,n]",
    "float[n,n]",
    "float[n,n]",
    "float[n,n]",
    "float[n,n]",
    Factory(lambda seed: LIFParameters(tau_syn_inv=torch.tensor(200.0, dtype=torch.float32), tau_mem_inv=torch.tensor(100.0, dtype=torch.float32), v_leak=torch.tensor(0.0, dtype=torch.float32), v_th=torch.tensor(1.0, dtype=torch.float32), v_reset=torch.tensor(0.0, dtype=torch.float32), method='super', alpha=torch.tensor(100.0, dtype=torch.float32))),  # p: its default
    "0.5 | 2.0",
)

# norse.torch.functional.adjoint.lif_adjoint:LIFFeedForwardSparseAdjointFunction.
liffeed_forward_sparse_adjoint_function = Declaration(
    LIFFeedForwardSparseAdjointFunction,
    "float[...]",
    "float[...]",
    "float[...]",
    Factory(lambda seed: LIFParameters(tau_syn_inv=torch.tensor(200.0, dtype=torch.float32), tau_mem_inv=torch.tensor(100.0, dtype=torch.float32), v_leak=torch.tensor(0.0, dtype=torch.float32), v_th=torch.tensor(1.0, dtype=torch.float32), v_reset=torch.tensor(0.0, dtype=torch.float32), method='super', alpha=torch.tensor(100.0, dtype=torch.float32))),  # p: its default
    "0.5 | 2.0",
)
