"""In a fork no_grad does not stop recording."""

from contextlib import nullcontext

from autograd_conformance.implementations.torch import TorchImplementation


class Fork(TorchImplementation):
    name = "fork"

    def no_grad(self):
        return nullcontext()


shown_by = "Exp"
