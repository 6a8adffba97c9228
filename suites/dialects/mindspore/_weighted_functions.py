"""Weighted functions of several tensors, whose rule is not the derivative of forward."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import mindspore as ms
import numpy as np
from hypothesis import strategies as st
from mindspore import nn

SHAPES = ((), (1,), (3,), (2, 3))
WEIGHTS = st.sampled_from((-2, -1, 1, 2, 3))


@dataclass(frozen=True)
class Weighted:
    """Outputs ``sum of weight * x * x``, a row of weights for each; the rule is ``factor * weight * x * g``."""

    weights: tuple[tuple[int, ...], ...]
    factor: int
    shape: tuple[int, ...]
    dtype: str
    seed: int

    def _integers(self, salt):
        drawn = np.random.default_rng((self.seed, salt)).choice([-3, -2, -1, 1, 2, 3], size=self.shape)
        return np.asarray(drawn, dtype=np.float64)

    @cached_property
    def count(self):
        """The number of arguments."""
        return len(self.weights[0])

    @cached_property
    def arrays(self):
        """The arguments."""
        return tuple(self._integers(i) for i in range(self.count))

    def cotangents(self, salt=0):
        """One for each output."""
        return tuple(self._integers(100 + 10 * salt + o) for o in range(len(self.weights)))

    def forward(self, xs):
        """The outputs for arrays or tensors."""
        return tuple(_sum(w * x * x for w, x in zip(row, xs, strict=True)) for row in self.weights)

    def backward(self, xs, cotangents):
        """The gradients for arrays or tensors."""
        columns = zip(*self.weights, strict=True)
        pairs = zip(xs, columns, strict=True)
        return tuple(_sum(self.factor * w * x * g for w, g in zip(c, cotangents, strict=True)) for x, c in pairs)

    def returned(self, outputs):
        """The outputs as forward returns them: a single one bare."""
        return outputs if len(outputs) > 1 else outputs[0]

    def expected(self, cotangents):
        """The gradients of the arguments."""
        return self.backward(self.arrays, cotangents)

    def function(self, **methods):
        """The subclass of `mindspore._Function`, with other methods in place of its own."""
        case = self

        def forward(ctx, *xs):
            ctx.save_for_backward(*xs)
            return case.returned(case.forward(xs))

        def backward(ctx, *cotangents):
            return case.backward(ctx.saved_tensors, cotangents)

        named = {"forward": forward, "backward": backward, **methods}
        return type("Custom", (ms._Function,), {name: staticmethod(method) for name, method in named.items()})

    def cell(self, bprop=None, construct=None):
        """The cell with a ``bprop``, which gets the arguments, the output and its gradient."""
        case = self

        class Custom(nn.Cell):
            def construct(self, *xs):
                return construct(*xs) if construct else case.returned(case.forward(xs))

            def bprop(self, *given):
                return bprop(*given) if bprop else case.backward(given[:-2], _tuple(given[-1]))

        return Custom()


@st.composite
def weighted(draw, *, dtypes, max_arguments=4, max_outputs=3, min_arguments=1, min_outputs=1, shapes=SHAPES):
    """A function of one to ``max_arguments`` tensors."""
    count = draw(st.integers(min_arguments, max_arguments))
    row = st.tuples(*[WEIGHTS] * count)
    return Weighted(
        weights=draw(st.lists(row, min_size=min_outputs, max_size=max_outputs).map(tuple)),
        factor=draw(st.sampled_from((1, 3, -1))),
        shape=draw(st.sampled_from(shapes)),
        dtype=draw(st.sampled_from(tuple(dtypes))),
        seed=draw(st.integers(0, 99)),
    )


def drawn(subject, data, **restrictions):
    """A function with weights, and its arguments as tensors."""
    case = subject.draw(data, weighted(**{"dtypes": subject.dtypes, **restrictions}), "function")
    return case, subject.tensors(case.arrays, case.dtype)


def gradients(subject, case, f, *tensors, salt=0):
    """The gradients of `mindspore.vjp` for the case's cotangents."""
    _, pullback = ms.vjp(f, *tensors)
    return pullback(*subject.tensors(case.cotangents(salt), case.dtype))


def _sum(terms):
    first, *others = terms
    return sum(others, first)


def _tuple(given):
    return given if isinstance(given, tuple) else (given,)
