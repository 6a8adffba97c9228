"""A fork puts the gradients of matrices that were asked for in the first places."""

from autograd_conformance.implementations.torch import TorchImplementation


class Fork(TorchImplementation):
    name = "fork"

    def vjp(self, f, primals, *, track=None):
        outputs, pullback = super().vjp(f, primals, track=track)

        def packed(cotangents, wrt=None, differentiable=False):
            found = pullback(cotangents, wrt, differentiable)
            if wrt is None or primals[0].ndim < 2:
                return found
            return tuple(sorted(found, key=lambda g: g is None))

        return outputs, packed


shown_by = "LinearFunction"
