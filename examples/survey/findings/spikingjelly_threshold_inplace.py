"""spikingjelly 2.0.0: a DSR threshold that changes in place before backward makes gradients wrong."""

import torch
from spikingjelly.activation_based.neuron.dsr import DSRIFNode, DSRLIFNode

bad = 0
for function, rest in ((DSRIFNode.DSRIFFunction, (0.5, 1.0)), (DSRLIFNode.DSRLIFFunction, (2.0, 0.05, 0.3, 1.0))):
    x = torch.tensor([[0.7], [0.9], [0.2], [0.6]], requires_grad=True)
    threshold = torch.tensor(1.0, requires_grad=True)
    y = function.apply(x, 4, threshold, *rest)
    before = torch.autograd.grad(y.sum(), [x, threshold], retain_graph=True)
    with torch.no_grad():
        threshold.fill_(0.001)
    try:
        after = torch.autograd.grad(y.sum(), [x, threshold])
    except RuntimeError as error:
        print(function.__name__, "refused, as it should be:", error)
        continue
    for name, a, b in zip(("input", "threshold"), before, after, strict=True):
        print(f"{function.__name__}, {name}: {a.flatten().tolist()}; after fill_(0.001): {b.flatten().tolist()}")
        bad += not torch.allclose(a, b)
raise SystemExit(bad > 0)
