"""A fork passes ones as the cotangent of a non-differentiable output."""

import torch

from autograd_conformance.implementations.torch import TorchImplementation


class Fork(TorchImplementation):
    name = "fork"

    def function(self, cls):
        def backward(ctx, g, *others):
            return cls.backward(ctx, g, *map(torch.ones_like, others))

        return type(cls.__name__, (cls,), {"backward": staticmethod(backward)}).apply


shown_by = "Sort"
