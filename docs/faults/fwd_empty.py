"""In a fork an output without dimensions comes back with one dimension."""

from autograd_conformance.implementations.torch import TorchImplementation


class Fork(TorchImplementation):
    name = "fork"

    def function(self, cls):
        def call(*args):
            y = cls.apply(*args)
            return y if y.ndim else y.reshape(1)

        return call


shown_by = "Exp"
