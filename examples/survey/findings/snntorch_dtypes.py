"""snntorch 1.0.0: spikes are float32 whatever the dtype of the membrane, so that a next layer in float64 crashes."""

import torch
from snntorch import surrogate

ARGUMENTS = {
    "StraightThroughEstimator": (), "Triangular": (1,), "FastSigmoid": (25,), "ATan": (2.0,), "Heaviside": (),
    "Sigmoid": (25,), "SpikeRateEscape": (1, 25), "StochasticSpikeOperator": (0, 0.2), "LeakySpikeOperator": (0.1,),
    "SparseFastSigmoid": (25, 1),
}  # fmt: skip

bad = 0
for name, arguments in ARGUMENTS.items():
    spikes = getattr(surrogate, name).apply(torch.tensor([0.1, -0.1], dtype=torch.float64), *arguments)
    print(f"{name} of float64: {spikes.dtype}")
    bad += spikes.dtype != torch.float64
try:
    torch.nn.Linear(2, 2).double()(spikes)
    print("a Linear after it works")
except RuntimeError as error:
    print("a Linear after it raises", error)
raise SystemExit(bad > 0)
