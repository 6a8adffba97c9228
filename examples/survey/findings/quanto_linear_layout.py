"""optimum-quanto 0.2.7: QuantizedLinearFunction's gradient raises for what is not contiguous: view in backward."""

import torch
from optimum.quanto.tensor.function import QuantizedLinearFunction

torch.manual_seed(0)
weight = torch.randn(4, 3, requires_grad=True)
bad = 0
for what, x, use in (
    ("contiguous", torch.randn(2, 5, 3), lambda y: y),
    ("an input that is transposed", torch.randn(5, 2, 3).transpose(0, 1), lambda y: y),
    ("an output that is transposed later", torch.randn(2, 5, 3), lambda y: y.transpose(0, 1).reshape(-1)),
):
    expected = torch.autograd.grad(use(torch.nn.functional.linear(x, weight)).pow(2).sum(), weight)[0]
    try:
        got = torch.autograd.grad(use(QuantizedLinearFunction.apply(x, weight, None)).pow(2).sum(), weight)[0]
        print(f"{what}: off by {(got - expected).abs().max().item()} from linear")
    except RuntimeError as error:
        print(f"{what}: linear's gradient {expected.flatten()[:2].tolist()} ..., but this raises: {error}")
        bad += 1
raise SystemExit(bad > 0)
