"""A fork hands on gradients of half precision in single precision."""

import torch

from autograd_conformance.implementations.torch import TorchImplementation


class Fork(TorchImplementation):
    name = "fork"

    def vjp(self, f, primals, *, track=None):
        outputs, pullback = super().vjp(f, primals, track=track)

        def widened(*args, **options):
            found = pullback(*args, **options)
            return tuple(g.float() if g is not None and g.dtype == torch.float16 else g for g in found)

        return outputs, widened


shown_by = "Exp"
