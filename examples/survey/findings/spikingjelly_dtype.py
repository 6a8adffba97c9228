"""spikingjelly 2.0.0: DSR nodes and LeakyIntegratorStep return float32 whatever the dtype of the input."""

import torch
from spikingjelly.activation_based.lava_exchange import LeakyIntegratorStep
from spikingjelly.activation_based.neuron.dsr import DSRIFNode, DSRLIFNode

x = torch.rand(4, 2, dtype=torch.float64)
one = torch.tensor(1.0, dtype=torch.float64)
bad = 0
for function, arguments in (
    (DSRIFNode.DSRIFFunction, (x, 4, one, 0.5, 1.0)),
    (DSRLIFNode.DSRLIFFunction, (x, 4, one, 2.0, 0.05, 0.3, 1.0)),
    (LeakyIntegratorStep, (x, one, x, 4096)),
):
    output = function.apply(*arguments)
    try:
        torch.nn.Linear(2, 1).double()(output)
        said = "a Linear after it works"
    except RuntimeError as error:
        said = f"a Linear after it raises {error}"
    print(f"{function.__name__} of float64: {output.dtype}; {said}")
    bad += output.dtype != torch.float64
raise SystemExit(bad > 0)
