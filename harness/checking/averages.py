"""Results of many similar calls in half precision, next to those of the reference."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from autograd_conformance.harness.checking.example import Example
from autograd_conformance.harness.checking.expected import Expected
from autograd_conformance.harness.checking.transforms import second_order, weights_of
from autograd_conformance.harness.outcomes import Kind
from autograd_conformance.reference.averages import CALLS, Systematic, systematic
from autograd_conformance.reference.rounding import PRECISION
from autograd_conformance.strategies.calls import Call, Tensor
from autograd_conformance.strategies.values import DOMAINS


@dataclass(frozen=True)
class Results:
    """Which results of a call to compare: their names, what came back, and what the reference says for cotangents.

    ``missing`` is the kind of a result that is zero throughout, but should not be. ``verifies`` says whether no other
    test compares them. ``allowed`` is a factor on what rounding may do to them.
    """

    names: Callable[[Example], Sequence[str]]
    got: Callable[[Example], Iterable[Any]]
    expected: Callable[[Expected, Sequence[Any]], Iterable[Any]]
    missing: Kind = Kind.WRONG
    verifies: bool = False
    allowed: float = 1.0


OUTPUTS = Results(
    lambda example: example.output_names,
    lambda example: example.outputs(),
    lambda expected, _: (y.value for y in expected.outputs),
)
GRADIENTS = Results(
    lambda example: example.names,
    lambda example: example.run()[1],
    lambda expected, cotangents: expected.vjp(cotangents, exact=True),
)


def _second(example: Example) -> Iterable[Any]:
    """The second derivatives of a call; zeros where there are none."""
    found = second_order(example, "cotangents", "grad").gradients
    pairs = zip(found, example.call.tensors, strict=False)
    return [example.tensor(np.zeros(t.shape), t.dtype) if g is None else g for g, t in pairs]


def _second_of_reference(expected: Expected, cotangents: Sequence[Any]) -> Iterable[Any]:
    function, given = expected.function, expected.reference_arguments(exact=True)
    assert function.second is not None
    weights = dict(zip(expected.slots, weights_of(expected), strict=True))
    aligned = [weights.get(slot) for slot in range(len(given))]
    found = function.second(aligned, expected.reference_cotangents(cotangents, exact=True), *given)
    return [found[slot] for slot in expected.slots]


# What is zero, and should be.
_ZERO = Systematic("everywhere", bias=False, value=0.0, limit=1.0, least=1.0)

# The rounding errors of a derivative of a rounded derivative are larger.
SECOND = Results(
    lambda example: [f"second derivative for {name}" for name in example.input_names],
    _second,
    _second_of_reference,
    missing=Kind.DETACHED,
    verifies=True,
    allowed=4.0,
)


def worst_averages(example: Example, results: Results, conditioning: float) -> Iterator[tuple[str, Systematic | None]]:
    """The largest systematic error of each result, by name, over calls that differ from the example's in values only.

    None for a result that has no average: it is almost zero everywhere, or has another shape in each call.
    Where it exceeds its limit, the limit grows with what moving all inputs towards zero by one unit does: a kernel that
    truncates each operation does something like it.
    """
    conditioning *= results.allowed
    examples = [example.of(_other(example, number)) for number in range(CALLS)]
    expected = [_of_reference(each, results) for each in examples]
    got = [[None if y is None else example.implementation.numpy(y) for y in results.got(each)] for each in examples]
    precision, moved = PRECISION[example.call.dtype], None
    for number, name in enumerate(results.names(example)):
        pair = _stacked(got, number), _stacked(expected, number)
        if pair[0] is None or pair[1] is None or pair[0].shape != pair[1].shape:
            yield name, None
            continue
        if not np.any(pair[0]) and not np.any(pair[1]):
            yield name, _ZERO
            continue
        found = list(systematic(*pair, precision, conditioning=conditioning))
        if any(each.ratio > 1 for each in found):
            moved = moved or [_of_reference(each, results, 1 - precision.unit) for each in examples]
            truncated = systematic(_stacked(moved, number), pair[1], precision)
            values = {(each.where, each.bias): each.value for each in truncated}
            found = [each.excusing(values.get((each.where, each.bias), 0.0) * conditioning) for each in found]
        yield name, max(found, key=lambda each: each.ratio, default=None)


def _other(example: Example, number: int) -> Call:
    args = tuple(_dense(a, g) for a, g in zip(example.function.arguments, example.call.args, strict=False))
    cotangents = tuple(c and replace(c, fill="dense") for c in example.call.cotangents)
    return replace(example.call, args=args, cotangents=cotangents, seed=example.call.seed + 11 * number)


def _dense(argument: Any, given: Any) -> Any:
    """A tensor whose values differ from call to call, where its domain has such."""
    if not isinstance(given, Tensor) or not argument.differentiable:
        return given
    fill = next(name for name in ("dense", "spaced") if name in DOMAINS[argument.values].fills)
    return replace(given, fill=fill, specials=())


def _of_reference(example: Example, results: Results, factor: float = 1.0) -> list[Any]:
    """The results of the reference, with inputs and cotangents times a factor."""
    expected = example.expected
    if factor != 1.0:
        tracked = [slot for slot, track in zip(example.slots, example.track, strict=True) if track]
        values = tuple(x * factor if slot in tracked else x for slot, x in enumerate(example.values))
        expected = Expected(example.function, example.call, values=values)
    cotangents = [None if g is None else g * factor for g in expected.cotangents]
    return list(results.expected(expected, cotangents))


def _stacked(rows: Sequence[Sequence[Any]], number: int) -> Any:
    """One result of all calls in one array; None unless all are real numbers of the same shape."""
    arrays = [row[number] for row in rows]
    if any(array is None or array.dtype.kind != "f" or not array.size for array in arrays):
        return None
    return np.stack(arrays).astype(np.float64) if len({array.shape for array in arrays}) == 1 else None
