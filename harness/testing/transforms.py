"""Transforms of a call (second derivatives, forward mode, batches, compilers), with the expected results."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from autograd_conformance.harness.testing.examined import raised_by_suite
from autograd_conformance.harness.testing.example import Example
from autograd_conformance.harness.testing.expected import Expected as Expectation
from autograd_conformance.harness.testing.expected import entries
from autograd_conformance.reference.deferred import Deferred
from autograd_conformance.reference.ladder import RESOLUTIONS, Estimate, Resolution, diagnose, slope
from autograd_conformance.reference.rounding import PRECISION, SAFETY, Tracked
from autograd_conformance.strategies.calls import cotangent_values

Gradients = tuple[Any, ...]
Expected = tuple[Tracked | None, ...]

# The most elements of a program's call of which a failure is explained: beyond, that takes too long.
SEARCHED = 2**14

LOSSES = ("cotangents", "nonlinear")


@dataclass(frozen=True)
class Derived:
    """Gradients along a direction, and what they are derivatives of: ``f`` with weights at points."""

    gradients: tuple[Any, ...]
    direction: tuple[Any, ...]
    f: Callable[..., Any]
    points: tuple[Any, ...]
    weights: tuple[Any, ...]


@dataclass(frozen=True)
class SecondOrder(Derived):
    """A second derivative along a direction, and the slope that finite differences of the reference VJP measured."""

    loss: str
    engine: str
    estimate: Estimate
    refusal: Exception | None
    culprit: Callable[[tuple[Any, ...]], str]

    @property
    def detached(self) -> bool:
        return self.refusal is None and all(g is None for g in self.gradients)


def second_order(example: Example, loss: str, engine: str) -> SecondOrder:
    """The derivative of <u, VJP> with respect to inputs and cotangents, for drawn u.

    With the loss ``cotangents`` the cotangents are variables. With ``nonlinear`` each output is its own cotangent, as
    for the loss of half its squared norm. ``engine`` is ``grad`` or ``backward``.
    """
    implementation, count = example.implementation, len(example.primals)
    free = [n for n, g in enumerate(example.cotangents) if g is not None] if loss == "cotangents" else []
    extra = [example.cotangents[n] for n in free]

    def h(*variables: Any) -> tuple[Any, ...]:
        outputs, pullback = implementation.vjp(example.f, variables[:count], track=example.track)
        given = dict(zip(free, variables[count:], strict=True)) if loss == "cotangents" else dict(enumerate(outputs))
        used = [given.get(n) if g is not None else None for n, g in enumerate(example.cotangents)]
        gradients = pullback(used, differentiable=True)
        # Without a gradient it is zero.
        rows = zip(gradients, example.expected.points(), example.call.tensors, strict=True)
        return tuple(
            example.tensor(np.zeros(x.shape), tensor.dtype) if g is None else g
            for g, x, tensor in rows
            if x is not None
        )

    weights = drawn_weights(example)
    pairs = zip(weights, example.call.tensors, strict=True)
    placed = [example.tensor(u, t.dtype) for u, t in pairs if u is not None]
    track = (*example.track, *(True for _ in extra))
    variables = [*example.primals, *extra]
    gradients: tuple[Any, ...] = (None,) * len(variables)
    refusal = None
    try:
        if engine == "backward":
            gradients = implementation.backward(h, variables, placed, track=track)
        else:
            gradients = implementation.vjp(h, variables, track=track)[1](placed)
    except implementation.refusals as refused:
        if raised_by_suite(refused):
            raise
        refusal = refused
    points = (*example.expected.points(), *(example.expected.cotangents[n] for n in free))
    direction = example.expected.directions(points)

    def reference(variables: Sequence[Any]) -> tuple[Any, ...]:
        arguments = example.expected.arguments_at(variables[:count])
        outputs = example.function.forward(*arguments)
        given = dict(zip(free, variables[count:], strict=True)) if loss == "cotangents" else dict(enumerate(outputs))
        used = [given[n] if g is not None else None for n, g in enumerate(example.cotangents)]
        full = example.function.vjp(example.expected.dense(used), *arguments)
        return tuple(full[slot] for slot in example.slots)

    resolution = RESOLUTIONS.get(example.function.derives_in)
    estimate = slope(reference, points, direction, weights, resolution)
    names = [*example.input_names, *(f"cotangent of {example.output_names[n]}" for n in free)]
    culprit = functools.partial(_culprit, example, reference, points, weights, names, resolution)
    derived = (gradients, direction, reference, points, weights)
    return SecondOrder(*derived, loss, engine, estimate, refusal, culprit)


@dataclass(frozen=True)
class FirstOrder(Derived):
    """Gradients and a direction, and the slope that finite differences of the reference measured."""

    estimate: Estimate
    culprit: Callable[[tuple[Any, ...]], str]


def first_order(example: Example) -> FirstOrder:
    """The gradients of a call, and the derivative of <cotangents, reference> along a direction."""
    _, gradients = example.run()
    f, points, weights = example.expected.outputs_at, example.expected.points(), example.expected.cotangents
    direction = example.expected.directions(points)
    resolution = RESOLUTIONS.get(example.function.computes_in)
    culprit = functools.partial(_culprit, example, f, points, weights, example.input_names, resolution)
    estimate = slope(f, points, direction, weights, resolution)
    return FirstOrder(gradients, direction, f, points, weights, estimate, culprit)


def _culprit(
    example: Example, f: Callable[..., Any], points: Sequence[Any], weights: Sequence[Any], names: Sequence[str],
    resolution: Resolution | None, gradients: tuple[Any, ...],
) -> str:  # fmt: skip
    for number, gradient in enumerate(gradients):
        places = np.argwhere(np.isnan(np.zeros(()) if gradient is None else gradient))
        if gradient is not None and len(places):
            index = tuple(int(i) for i in places[0])
            return f"the entry of {names[number]} at {index} is {gradient[index]}"
    if resolution is None or _takes_long(example):
        return ""
    count = len(example.slots)

    def among(moves: Sequence[Any]) -> tuple[Any, ...]:
        return (*entries(example.expected, moves[:count]), *moves[count:])

    found = diagnose(f, tuple(points), gradients, tuple(weights), resolution=resolution, among=among)
    if found is None:
        return ""
    worst = (
        f"the worst entry is {names[found.input]} at {found.index}: {found.got:.10g} instead of {found.expected:.10g}"
    )
    return f"{worst}, where the value is {points[found.input][found.index]:.6g}"


def _takes_long(example: Example) -> bool:
    """Whether the search for an entry takes longer than a check of a program's call may."""
    recorded = any(argument.recorded is not None for argument in example.arguments)
    return recorded and sum(math.prod(tensor.shape) for tensor in example.call.tensors) > SEARCHED


def drawn_weights(example: Example) -> tuple[Any, ...]:
    """A weight for the gradient of each tensor that requires grad, None for the others."""
    return weights_of(example.expected)


def weights_of(expected: Expectation) -> tuple[Any, ...]:
    """The weights of `drawn_weights`, given what is expected of the example."""
    seed = expected.call.seed
    return tuple(None if x is None else _weights(x, n + seed) for n, x in enumerate(expected.points()))


def _weights(values: Any, seed: int) -> Any:
    rng = np.random.default_rng(seed)
    weights = np.round(8 * rng.standard_normal(values.shape)) / 8
    return weights * (1 + 1j) if np.iscomplexobj(values) else weights


def drawn_tangents(example: Example) -> list[Any]:
    """A tangent for each tensor that requires grad, None for the others."""
    return list(example.expected.within(drawn_weights(example)))


def forward_mode(example: Example) -> tuple[Gradients, Expected]:
    """Tangents of the outputs, and the reference JVP."""
    tangents = drawn_tangents(example)
    pairs = zip(tangents, example.call.tensors, strict=True)
    placed = [None if u is None else example.tensor(u, tensor.dtype) for u, tensor in pairs]
    _, got = example.implementation.jvp(example.in_place, example.fresh_primals(), placed)
    return got, _reference_tangents(example, tangents)


def _reference_tangents(example: Example, tangents: Sequence[Any]) -> Expected:
    arguments = example.expected.reference_arguments()
    aligned: list[Any] = [None] * len(arguments)
    for slot, tangent in zip(example.slots, tangents, strict=True):
        values = np.zeros_like(example.values[slot]) if tangent is None else tangent
        aligned[slot] = Tracked.exact(values, example.call.dtype)
    assert example.function.jvp is not None
    found = example.function.jvp(tuple(aligned), *arguments)
    if not example.implementation.zeros_for_none:
        return tuple(found)
    zeros = [Tracked.exact(np.zeros(y.shape), example.expected.precision) for y in example.expected.outputs]
    return tuple(zero if t is None else t for t, zero in zip(found, zeros, strict=True))


def adjoint(example: Example) -> tuple[Any, Tracked]:
    """<cotangent, JVP(tangent)>, and <VJP(cotangent), tangent> with the error bound of their difference."""
    tangents = drawn_tangents(example)
    found, expected = forward_mode(example)
    forward = _inner(example, example.expected.cotangents, found, expected)
    reverse = _inner(example, tangents, example.run()[1], example.expected.gradients())
    gap = forward - reverse
    return forward.value, gap.around(reverse.value)


def _inner(example: Example, known: Sequence[Any], found: Sequence[Any], expected: Expected) -> Tracked:
    """The inner product of arrays with the implementation's results, with the reference's error bounds."""
    total = Tracked.exact(np.zeros(()), "float64")
    for a, tensor, reference in zip(known, found, expected, strict=True):
        if a is not None and tensor is not None and reference is not None:
            total = total + _terms(a, example.implementation.numpy(tensor), reference).sum()
    return total


def _terms(factors: Any, values: Any, reference: Tracked) -> Tracked:
    """The real parts of products, with the reference's error bounds; no error counts where the factor is 0."""
    terms = np.real(np.conj(factors) * values)

    def bound(name: str) -> Any:
        with np.errstate(all="ignore"):
            error = SAFETY * np.abs(factors) * getattr(reference, name)
        return np.where(factors == 0, 0.0, error + PRECISION["float64"].unit * np.abs(terms))

    return Deferred(terms, PRECISION["float64"], bound)


# What a test of batches draws, by the labels in a finding.
AXES, SIZE = "batched axis of each tensor", "batch size"

# The usual lengths of a batch, and the longest one.
_LENGTHS, _LONGEST = (2, 1, 3), 4


class Batch:
    """A batch of ``size`` similar calls: each tensor is stacked along an axis, or shared by all of them."""

    def __init__(self, example: Example, axes: Sequence[int | None], size: int) -> None:
        self.example, self.axes = example, tuple(axes)
        self.members = [self._member(number) for number in range(size)]

    def _member(self, number: int) -> Example:
        member = self.example.of(replace(self.example.call, seed=self.example.call.seed + 3 * number))
        pairs = enumerate(zip(self.example.slots, self.axes, strict=True))
        return member.given({n: self.example.values[slot] for n, (slot, axis) in pairs if axis is None})

    def run(self) -> tuple[Gradients, Callable[[], Gradients]]:
        """Outputs of the batched Function, and a function that computes the gradients through it."""
        example, dtypes = self.example, [t.dtype for t in self.example.call.tensors]
        rows = zip(example.slots, self.axes, dtypes, strict=True)
        primals = [example.tensor(self._stacked(slot, axis), dtype) for slot, axis, dtype in rows]
        batched = example.implementation.vmap(example.f, self.axes)
        outputs, pullback = example.implementation.vjp(batched, primals, track=example.track)
        cotangents = zip(*(member.expected.cotangents for member in self.members), strict=True)
        stacked = [None if g[0] is None else np.stack(g) for g in cotangents]
        return outputs, lambda: pullback(example.placed(stacked))

    def _stacked(self, slot: int, axis: int | None) -> Any:
        values = [member.values[slot] for member in self.members]
        return values[0] if axis is None else np.stack(values, axis=axis)

    @property
    def expected_outputs(self) -> tuple[Any, ...]:
        return tuple(np.stack(each) for each in zip(*(m.expected.outputs for m in self.members), strict=True))

    @property
    def expected_gradients(self) -> tuple[Any, ...]:
        each = zip(*(member.expected.gradients() for member in self.members), strict=True)
        return tuple(
            None if g[0] is None else sum(g[1:], g[0]) if axis is None else np.stack(g, axis=axis)
            for g, axis in zip(each, self.axes, strict=True)
        )


def batch_sizes(example: Example) -> tuple[int, ...]:
    """The lengths of a batch: often that of another dimension, for which a rule may take the batched one."""
    lengths = {length for tensor in example.call.tensors for length in tensor.shape if 1 < length <= _LONGEST}
    return (*_LENGTHS, *sorted(lengths) * 2)


def batch_axes(example: Example) -> tuple[tuple[int | None, ...], ...]:
    """The ways to batch a call: for each tensor an axis or None, at least one axis.

    Index tensors belong together: all of them are batched along the first axis, or none.
    """

    def ways(index: bool) -> list[tuple[int | None, ...]]:
        options: list[list[int | None]] = []
        for argument, tensor in zip(example.arguments, example.call.tensors, strict=True):
            ends = [0, -1, 1] if tensor.shape else [0]
            options.append([*ends, None] if argument.differentiable else [0 if index else None])
        return [way for way in itertools.product(*options) if any(axis is not None for axis in way)]

    return tuple(dict.fromkeys([*ways(False), *ways(True)]))


def _cotangents_of_batch(example: Example, size: int) -> list[tuple[Any, ...]]:
    seeds = [replace(example.call, seed=example.call.seed + 3 * number) for number in range(size)]
    shapes = [y.shape for y in example.expected.outputs]
    return [cotangent_values(call, shapes, example.expected.output_dtypes) for call in seeds]


def stacked_cotangents(example: Example, size: int) -> tuple[Any, ...]:
    """Several cotangents for each output in one array, None for outputs that are not used."""
    columns = zip(*_cotangents_of_batch(example, size), strict=True)
    return tuple(None if g[0] is None else np.stack(g) for g in columns)


def batched_cotangents(example: Example, size: int) -> tuple[Callable[[], Gradients], tuple[Any, ...]]:
    """A function that computes the gradients for several cotangents at once, and the stacked reference gradients."""
    each = _cotangents_of_batch(example, size)
    stacked = example.placed(stacked_cotangents(example, size))
    expected = zip(*(example.expected.gradients(g) for g in each), strict=True)
    f, primals, track = example.f, example.primals, example.track
    return (
        lambda: example.implementation.batched_vjp(f, primals, stacked, track=track),
        tuple(None if g[0] is None else np.stack(g) for g in expected),
    )


def compiled(example: Example, earlier: Example) -> tuple[Gradients, Gradients]:
    """Outputs and gradients of the compiled Function, after an earlier call with the same shapes."""
    implementation = example.implementation
    apply = implementation.compile(implementation.function(example.cls))
    found = []
    for each in (earlier, example):
        f = functools.partial(each.call_with, apply)
        outputs, pullback = implementation.vjp(f, each.primals, track=each.track)
        found.append((outputs, pullback(each.cotangents)))
    return found[-1]


def autocast(example: Example, dtype: str) -> tuple[Gradients, Gradients]:
    """Outputs and gradients when the forward runs under autocast."""
    implementation = example.implementation
    with implementation.autocast(example.call.device, dtype):
        outputs, pullback = implementation.vjp(example.f, example.primals, track=example.track)
    dtypes = [implementation.describe(y).dtype for y in outputs]
    pairs = zip(example.expected.cotangents, dtypes, strict=True)
    cotangents = [None if g is None else example.tensor(g, kind) for g, kind in pairs]
    return outputs, pullback(cotangents)
