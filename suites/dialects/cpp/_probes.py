"""A drawn call of the Functions in C++ that clauses are about."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from hypothesis import strategies as st

from autograd_conformance.implementations.torch.cpp import extension

VECTORS = st.lists(st.sampled_from((1.0, -1.0, 2.0, -3.0)), min_size=2, max_size=2)
FACTORS = st.sampled_from((1.0, -2.0, 0.5))


def probes() -> Any:
    """The compiled Functions."""
    return extension().probes


class Product:
    """A call of ``factor * x * w + bias, x + w``; ``tensors`` are x, w and, if there is one, the bias."""

    def __init__(self, subject: Any, data: Any, *, bias: bool | None = None, materialize: bool = True) -> None:
        self.subject = subject
        self.factor = subject.draw(data, FACTORS, "factor")
        given = subject.draw(data, st.booleans(), "with a bias") if bias is None else bias
        values = subject.draw(data, st.tuples(*[VECTORS] * (2 + given)), "tensors")
        self.tensors = [tensor.requires_grad_() for tensor in subject.tensors(values)]
        self.listed = subject.tensors([subject.draw(data, VECTORS, "a tensor of the list")])[0].requires_grad_()
        self.materialize = materialize
        self.g = subject.tensor(subject.draw(data, VECTORS, "cotangent"))

    def outputs(self) -> tuple[Any, Any]:
        """The two outputs."""
        x, w, *bias = self.tensors
        listed = [self.listed]
        y, z = probes().product(self.factor, x, w, bias[0] if bias else None, listed, self.materialize)
        return y, z

    def gradients(self) -> list[Any]:
        """The gradients of the first output by all tensors, for the cotangent."""
        x, w, g = (t.detach().numpy() for t in (*self.tensors[:2], self.g))
        return [self.factor * g * w, self.factor * g * x, np.array(g)][: len(self.tensors)]

    def assert_gradients(self, y: Any, **options: Any) -> None:
        """Assert that backward gives these gradients."""
        found = torch.autograd.grad(y, self.tensors, self.g, **options)
        self.subject.assert_all_same("gradients", got=found, expected=self.gradients())
