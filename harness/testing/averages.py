"""Results of many similar calls in half precision, next to those of the reference."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from autograd_conformance.harness.outcomes import Kind
from autograd_conformance.harness.testing.example import Example
from autograd_conformance.harness.testing.expected import Expected
from autograd_conformance.harness.testing.transforms import second_order, weights_of
from autograd_conformance.reference.averages import CALLS, Systematic, systematic, typical
from autograd_conformance.reference.rounding import PRECISION, Precision
from autograd_conformance.strategies.calls import Call, Tensor, with_fill_of_cotangents
from autograd_conformance.strategies.values import DOMAINS


@dataclass(frozen=True)
class Results:
    """Which results of a call to compare: their names, what came back, and what the reference says for cotangents.

    ``missing`` is the kind of a result that is zero throughout, but should not be. ``verifies`` says whether no other
    test compares them. ``allowed`` is a factor on what rounding may do to them. ``order`` is that of the derivative.
    """

    names: Callable[[Example], Sequence[str]]
    got: Callable[[Example], Iterable[Any]]
    expected: Callable[[Expected, Sequence[Any]], Iterable[Any]]
    missing: Kind = Kind.WRONG
    verifies: bool = False
    allowed: float = 1.0
    order: int = 0


OUTPUTS = Results(
    lambda example: example.output_names,
    lambda example: example.outputs(),
    lambda expected, _: (y.value for y in expected.outputs),
)
GRADIENTS = Results(
    lambda example: example.names,
    lambda example: example.run()[1],
    lambda expected, cotangents: expected.vjp(cotangents, exact=True),
    order=1,
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
    order=2,
)

# What built-in operations of the same formula give, if they are known.
ByFormula = Callable[[Example], tuple[Any, ...] | None]
# How many times the error of built-in operations of the same formula is right, too.
_OF_FORMULA = 4.0
# How many units of what outputs, cotangents and inputs suggest a derivative must be.
_CANCELLED = 4.0


def worst_averages(
    example: Example, results: Results, conditioning: float, by_formula: ByFormula
) -> Iterator[tuple[str, Systematic | None]]:
    """The largest systematic error of each result, by name, over calls that differ from the example's in values only.

    None for a result that has no average: it is almost zero everywhere, what is left of large terms that cancel, or has
    another shape in each call.
    Where it exceeds its limit, the limit grows with what moving all inputs towards zero by one unit does: a kernel that
    truncates each operation does something like it. It grows as well with the error of built-in operations.
    """
    conditioning *= results.allowed
    examples = [example.of(_other(example, number)) for number in range(CALLS)]
    expected = [_of_reference(each, results) for each in examples]
    got = [[None if y is None else example.implementation.numpy(y) for y in results.got(each)] for each in examples]
    precision, moved = PRECISION[example.call.dtype], None
    known: list[Any] = []
    for number, name in enumerate(results.names(example)):
        pair = _stacked(got, number), _stacked(expected, number)
        if pair[0] is None or pair[1] is None or pair[0].shape != pair[1].shape:
            yield name, None
            continue
        if not np.any(pair[0]) and not np.any(pair[1]):
            yield name, _ZERO
            continue
        found = list(systematic(*pair, precision, conditioning=conditioning))
        if any(each.ratio > 1 for each in found) and results.order:
            known = known or _by_formula(examples, by_formula, results)
            if None not in known:
                of_formula = _values(_stacked(known, number), pair[1], precision)
                largest = max(map(abs, of_formula.values()), default=0.0)
                found = [each.beside(largest * _OF_FORMULA) for each in found]
            elif _cancels(examples, number, pair[1], results.order):
                yield name, None
                continue
        if any(each.ratio > 1 for each in found):
            moved = moved or [_of_reference(each, results, 1 - precision.unit) for each in examples]
            values = _values(_stacked(moved, number), pair[1], precision)
            found = [each.excusing(values.get((each.where, each.bias), 0.0) * conditioning) for each in found]
        yield name, max(found, key=lambda each: each.ratio, default=None)


def _by_formula(examples: Sequence[Example], by_formula: ByFormula, results: Results) -> list[Any]:
    """What built-in operations give for each call; None where it is not known, as it is of second derivatives."""
    return [by_formula(each) if results.order == 1 else None for each in examples]


def _values(got: Any, expected: Any, precision: Precision) -> dict[tuple[str, bool], float]:
    """The systematic errors of a result of all calls, by where they are and whether they are a bias."""
    if got is None or got.shape != expected.shape:
        return {}
    return {(each.where, each.bias): each.value for each in systematic(got, expected, precision)}


def _cancels(examples: Sequence[Example], number: int, expected: Any, order: int) -> bool:
    """Whether a derivative is so small, next to outputs and inputs, that rounding of terms that cancel covers it."""
    first = examples[0]
    unit = PRECISION[first.call.dtype].unit
    outputs = max((typical(y.value) for y in first.expected.outputs if y.value.dtype.kind == "f"), default=0.0)
    weights = max((typical(g) for g in first.expected.cotangents if g is not None), default=0.0)
    size = typical(first.values[first.slots[number]])
    natural = outputs * weights / size**order if size else 0.0
    return typical(expected) < _CANCELLED * unit * natural


def _other(example: Example, number: int) -> Call:
    args = tuple(_dense(a, g) for a, g in zip(example.function.arguments, example.call.args, strict=False))
    call = with_fill_of_cotangents(example.call, "dense")
    return replace(call, args=args, seed=call.seed + 11 * number)


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
