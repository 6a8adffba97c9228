"""What adapters share: masks, array namespaces, NumPy arrays, and two ways in which frameworks differentiate."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from types import ModuleType
from typing import Any

import numpy as np

from autograd_conformance.implementations.protocol import BackwardPass, Implementation, Mask, Tensors, as_tuple


def chosen(values: Iterable[Any], mask: Mask) -> list[Any]:
    """The values at which the mask is True."""
    return [x for x, m in zip(values, mask, strict=True) if m]


def merged(values: Sequence[Any], mask: Mask, given: Iterable[Any]) -> Tensors:
    """The values, with the given ones in order where the mask is True."""
    others = iter(given)
    return tuple(next(others) if m else x for x, m in zip(values, mask, strict=True))


def placed(mask: Mask, given: Iterable[Any]) -> Tensors:
    """The given values in order where the mask is True, None elsewhere."""
    return merged([None] * len(mask), mask, given)


def used(outputs: Sequence[Any], cotangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """The outputs that have a cotangent, and their cotangents."""
    mask = [g is not None for g in cotangents]
    return chosen(outputs, mask), chosen(cotangents, mask)


def of_moving(f: Callable[..., Any], values: Sequence[Any], moves: Mask) -> tuple[Any, Tensors]:
    """``f`` as a function of the values that move, with the others closed over, and the values that move."""
    return lambda *given: f(*merged(values, moves, given)), tuple(chosen(values, moves))


def by_outputs(grad: Callable[..., Iterable[Any]], outputs: Tensors, inputs: Sequence[Any]) -> BackwardPass:
    """The function that `Implementation.differentiate` returns, made of a function like `torch.autograd.grad`.

    ``grad(outputs, inputs, cotangents, differentiable)`` gets the outputs that are used and the inputs that are wanted,
    and returns the gradients of these inputs in order.
    """

    def gradients(cotangents: Sequence[Any], wanted: Mask, differentiable: bool) -> Tensors:
        (ends, given), starts = used(outputs, cotangents), chosen(inputs, wanted)
        found = grad(ends, starts, given, differentiable) if ends and starts else [None] * len(starts)
        return placed(wanted, found)

    return gradients


def namespace(origin: Any, **renamed: Any) -> ModuleType:
    """A framework's module with the names of the array API: its public names, and those that are ``renamed``."""
    xp = ModuleType(f"{getattr(origin, '__name__', origin)} under the names of the array API")
    vars(xp).update({name: getattr(origin, name) for name in dir(origin) if not name.startswith("_")}, **renamed)
    return xp


class NumPyImplementation(Implementation):
    """An implementation whose tensors can be read as NumPy arrays."""

    @abstractmethod
    def as_numpy(self, tensor: Any) -> Any:
        """The tensor as a NumPy array, which shares its memory if ``views`` are claimed."""

    def numpy(self, tensor: Any) -> Any:
        array = self.as_numpy(tensor)
        # bfloat16 is not a dtype of NumPy: its kind is V.
        return np.array(array, {"f": np.float64, "V": np.float64, "c": np.complex128}.get(array.dtype.kind))

    def shares_memory(self, a: Any, b: Any) -> bool:
        return bool(np.shares_memory(self.as_numpy(a), self.as_numpy(b)))

    def strides(self, tensor: Any) -> tuple[int, ...]:
        array = self.as_numpy(tensor)
        return tuple(step // array.itemsize for step in array.strides)


class BatchingImplementation(Implementation):
    """An implementation that batches cotangents with its `vmap`."""

    def batched_vjp(
        self, f: Callable[..., Any], primals: Sequence[Any], cotangents: Sequence[Any], *, track: Mask
    ) -> Tensors:
        _, pullback = self.vjp(f, primals, track=track)
        batched = [g is not None for g in cotangents]
        gradients, given = of_moving(lambda *each: tuple(chosen(pullback(each), track)), cotangents, batched)
        return placed(track, self.vmap(gradients, [0] * len(given))(*given))


class TransformingImplementation(BatchingImplementation):
    """An implementation that differentiates by transforming functions, as JAX does."""

    @abstractmethod
    def pulled(self, f: Callable[..., Tensors], primals: Tensors) -> tuple[Tensors, Callable[..., Iterable[Any]]]:
        """The outputs, and a function from their cotangents (or None) to the gradients of the primals."""

    def pushed(self, f: Callable[..., Tensors], primals: Tensors, tangents: Tensors) -> tuple[Tensors, Tensors]:
        """The outputs and their tangents, if every primal has a tangent; needed for ``jvp``."""
        raise NotImplementedError

    def differentiate(self, f: Callable[..., Tensors], primals: Tensors, tracked: Mask) -> tuple[Tensors, BackwardPass]:
        outputs, pull = self.pulled(*of_moving(f, primals, tracked))
        return outputs, lambda cotangents, *_: placed(tracked, pull(cotangents))

    def jvp(self, f: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Tensors, Tensors]:
        moves = [t is not None for t in tangents]
        of_those, points = of_moving(lambda *given: as_tuple(f(*given)), primals, moves)
        return self.pushed(of_those, points, tuple(chosen(tangents, moves)))


class RecordingImplementation(Implementation):
    """An implementation whose tensors record the graph that computed them, as PyTorch's do."""

    @abstractmethod
    def leaf(self, x: Any, track: bool) -> Any:
        """A leaf of a new graph, with the values of ``x``."""

    @abstractmethod
    def recording(self) -> AbstractContextManager[Any]:
        """A context in which calls are recorded, even if recording was switched off."""

    @abstractmethod
    def grad(self, outputs: Any, inputs: Any, cotangents: Any, differentiable: bool) -> Iterable[Any]:
        """The gradients of the inputs (None if there is none), by a backward pass that retains the graph."""

    @abstractmethod
    def accumulate(self, outputs: Any, cotangents: Any, differentiable: bool) -> None:
        """Run a backward pass that adds to the ``grad`` of leaves."""

    def starting(self, outputs: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        """The cotangents, with None for outputs from which no backward pass can start."""
        pairs = zip(outputs, cotangents, strict=True)
        return [g if g is not None and self.requires_grad(y) else None for y, g in pairs]

    def differentiate(self, f: Callable[..., Tensors], primals: Tensors, tracked: Mask) -> tuple[Tensors, BackwardPass]:
        # A primal that already has a history stays in the enclosing graph; any other becomes a leaf of a new one.
        leaves = [x if self.requires_grad(x) else self.leaf(x, t) for x, t in zip(primals, tracked, strict=True)]
        with self.recording():
            outputs = f(*leaves)
        gradients = by_outputs(self.grad, outputs, leaves)
        return outputs, lambda cotangents, *rest: gradients(self.starting(outputs, cotangents), *rest)

    def backward(
        self, f: Callable[..., Any], primals: Sequence[Any], cotangents: Sequence[Any], *, track: Mask,
        initial: Sequence[Any] | None = None, differentiable: bool = False,
    ) -> Tensors:  # fmt: skip
        leaves = list(map(self.leaf, primals, track))
        for leaf, grad in zip(leaves, initial or [None] * len(leaves), strict=True):
            leaf.grad = grad
        outputs = as_tuple(f(*leaves))
        self.accumulate(*used(outputs, self.starting(outputs, cotangents)), differentiable)
        return tuple(leaf.grad for leaf in leaves)
