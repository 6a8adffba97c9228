"""Batches of calls of a generated Function: each tensor has a batch dimension or is shared by all calls."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from hypothesis import strategies as st

from autograd_conformance.harness.testing.clauses import ClauseSubject
from autograd_conformance.reference.polynomials import Polynomial
from autograd_conformance.suites.contract._jvp_functions import some_tangents

SIZES = (1, 2, 3)


@dataclass(frozen=True)
class Batch:
    """Calls of one Function, with the batch dimension of each tensor argument, None for shared ones."""

    polynomial: Polynomial
    axes: tuple[int | None, ...]
    size: int

    @cached_property
    def stacked(self) -> dict[int, Any]:
        """Each tensor argument by its position, with the batch dimension first if it has one."""
        members = [replace(self.polynomial, seed=self.polynomial.seed + 100 * (m + 1)) for m in range(self.size)]
        shared = self.polynomial.values
        return {
            i: shared[i] if axis is None else np.stack([member.values[i] for member in members])
            for i, axis in zip(self.polynomial.tensors, self.axes, strict=True)
        }

    @property
    def floating(self) -> tuple[int, ...]:
        """The tensor arguments that are differentiated, counted among the tensors."""
        return tuple(place for place, i in enumerate(self.polynomial.tensors) if i in self.polynomial.floating)

    def tensors(self, subject: ClauseSubject) -> tuple[Any, ...]:
        """The tensor arguments as vmap takes them."""
        return subject.tensors(self.placed(list(self.stacked.values())), self.polynomial.dtype)

    def placed(self, arrays: Sequence[Any]) -> list[Any]:
        """The arrays, one for each tensor argument, with the batch dimension where the tensor has it."""
        pairs = zip(arrays, self.axes, strict=True)
        return [a if axis is None or a is None else np.moveaxis(a, 0, axis) for a, axis in pairs]

    def outputs(self) -> list[Any]:
        """The floating outputs, with the batch dimension first."""
        power = self.polynomial.power
        return [self._weighted(o, lambda i: self.stacked[i] ** power) for o in self.polynomial.float_outputs]

    def moved(self, tangents: dict[int, Any], factor: int = 1) -> list[Any]:
        """The tangents of the floating outputs, given those of the floating tensors."""
        return [
            self._weighted(o, lambda i: factor * self._slope(i) * tangents[i]) for o in self.polynomial.float_outputs
        ]

    def _slope(self, position: int) -> Any:
        power = self.polynomial.power
        return power * self.stacked[position] ** (power - 1)

    def _weighted(self, output: int, term: Callable[[int], Any]) -> Any:
        weights = zip(self.polynomial.weights[output], self.polynomial.floating, strict=True)
        return self._full(sum(weight * term(i) for weight, i in weights))

    def _full(self, values: Any) -> Any:
        return np.broadcast_to(values, (self.size, *self.polynomial.shape))

    def tangents(self) -> dict[int, Any]:
        """A tangent for each floating tensor, with the batch dimension first if it has one."""
        floating = self.polynomial.floating
        each = [some_tangents(replace(self.polynomial, seed=m), floating) for m in range(self.size)]
        batched = dict(zip(self.polynomial.tensors, self.axes, strict=True))
        return {i: each[0][i] if batched[i] is None else np.stack([t[i] for t in each]) for i in floating}

    def cotangents(self) -> list[Any]:
        """A cotangent for each floating output, with the batch dimension first."""
        each = [self.polynomial.cotangents(salt=100 * m) for m in range(self.size)]
        return [np.stack([member[o] for member in each]) for o in self.polynomial.float_outputs]

    def gradients(self, cotangents: Sequence[Any], factor: int = 1) -> list[Any]:
        """The gradients of each call, with the batch dimension first; None for tensors that are not differentiated."""
        return [
            self._full(factor * self._slope(i) * self._pulled(i, cotangents)) if i in self.polynomial.floating else None
            for i in self.polynomial.tensors
        ]

    def _pulled(self, position: int, cotangents: Sequence[Any]) -> Any:
        column = self.polynomial.floating.index(position)
        weights = [self.polynomial.weights[o, column] for o in self.polynomial.float_outputs]
        return sum(weight * g for weight, g in zip(weights, cotangents, strict=True))

    def summed(self, gradients: Sequence[Any]) -> list[Any]:
        """The gradients placed like their tensors, and summed over the calls for shared tensors."""
        pairs = zip(gradients, self.axes, strict=True)
        return self.placed([np.sum(g, axis=0) if axis is None and g is not None else g for g, axis in pairs])


def drawn_batch(subject: ClauseSubject, data: Any, **restrictions: Any) -> Batch:
    """Draw a batch in which at least one floating tensor has a batch dimension, at any position."""
    # Repeated, so that often several tensors are floating and some of them shared.
    kinds = ("tracked", "tracked", "tracked", "integers", "None", "number", "text")
    options = {"arguments": kinds, "outputs": ("float",), "separate": True, "max_arguments": 3, "max_outputs": 2}
    polynomial = subject.polynomial(data, **{**options, **restrictions})
    ends = range(-len(polynomial.shape) - 1, len(polynomial.shape) + 1)
    axes = st.tuples(*[st.one_of(st.sampled_from(ends), st.none()) for _ in polynomial.tensors])
    places = Batch(polynomial, (), 1).floating
    some = axes.filter(lambda drawn: any(drawn[place] is not None for place in places))
    chosen = subject.draw(data, some, "batched dimension of each tensor")
    return Batch(polynomial, chosen, subject.draw(data, SIZES, "batch size"))


def call_function(batch: Batch, cls: Any) -> Callable[..., tuple[Any, ...]]:
    """A function from the tensors of one call to its floating outputs."""

    def f(*tensors: Any) -> tuple[Any, ...]:
        given = dict(zip(batch.polynomial.tensors, tensors, strict=True))
        outputs = cls.apply(*(given.get(i, value) for i, value in enumerate(batch.polynomial.values)))
        return tuple(outputs[o] for o in batch.polynomial.float_outputs)

    return f


def batch_loss(batch: Batch, cls: Any) -> Callable[..., Any]:
    """The sum of the floating outputs weighted with cotangents, as a function of those and the tensors."""
    f = call_function(batch, cls)

    def loss(cotangents: Sequence[Any], *tensors: Any) -> Any:
        return sum(torch.sum(y * g) for y, g in zip(f(*tensors), cotangents, strict=True))

    return loss


def with_vmap_method(subject: ClauseSubject, cls: Any) -> Any:
    """The Function with a batching rule that moves batch dimensions to the front and calls it again."""

    def vmap(info: Any, in_dims: Any, *args: Any) -> Any:
        outputs = called.apply(*moved_to_front(in_dims, args))
        return outputs, tuple(0 if isinstance(y, torch.Tensor) and y.is_floating_point() else None for y in outputs)

    called = subject.define(cls, name="Written", vmap=vmap, generate_vmap_rule=False)
    return called


def moved_to_front(in_dims: Sequence[int | None], args: Sequence[Any]) -> list[Any]:
    """The arguments of a batching rule with their batch dimensions first."""
    return [a if dim is None else a.movedim(dim, 0) for a, dim in zip(args, in_dims, strict=True)]
