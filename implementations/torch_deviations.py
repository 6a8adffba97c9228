"""What is known not to hold of released PyTorch: run, reported as `known`, and as `fixed` once it holds."""

from __future__ import annotations

from autograd_conformance.implementations.protocol import Deviation

DEVIATIONS = (
    Deviation(
        id="FWD-GRADFLAG",
        function="Select",
        what="requires_grad without grad mode",
        reason="a forward that returns a view of a leaf, called under no_grad, gives an output with requires_grad True "
        "and no grad_fn; the notes on no-grad mode say that results do not require grad",
        link="docs/source/notes/autograd.md, No-grad Mode",
        versions="seen on 2.13.0",
    ),
    Deviation(
        id="NIG-06",
        what="ctx.needs_input_grad in a partial backward",
        reason="the flags are fixed when forward runs: autograd.grad(y, inputs) leaves those of the other inputs True",
        link="https://github.com/pytorch/pytorch/issues/174017",
        versions="seen on 2.13.0",
    ),
)
