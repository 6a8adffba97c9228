"""The likely cause of a wrong number, where the failing call points to one that its property does not name."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np

from autograd_conformance.harness.check.bench import Bench
from autograd_conformance.harness.check.declaration.declaration import Declaration, Own
from autograd_conformance.harness.check.explain.causes import Failure
from autograd_conformance.harness.testing.attempts import attempted
from autograd_conformance.harness.testing.example import Example
from autograd_conformance.harness.testing.expected import Expected
from autograd_conformance.harness.testing.own_faults import noticed
from autograd_conformance.reference.definitions import Function
from autograd_conformance.reference.ladder import DOUBLE, Verdict, directions, inner, judge, slope
from autograd_conformance.reference.properties import PROPERTIES
from autograd_conformance.strategies import conj_neg_bits
from autograd_conformance.strategies.calls import (
    Call,
    recast,
    reshaped,
    varied,
    with_cotangents,
    with_fill_of_cotangents,
    with_inputs,
)
from autograd_conformance.strategies.empty_tensors import lacks_elements
from autograd_conformance.strategies.integers import repeating
from autograd_conformance.strategies.layouts import LAYOUTS
from autograd_conformance.strategies.lengths import LONG, is_short
from autograd_conformance.strategies.magnitudes import SMALL
from autograd_conformance.strategies.shapes import shape_tuples
from autograd_conformance.strategies.simple import with_fill

# The likely cause of wrong numbers that calls with elements do not have.
NOT_ZERO = (
    "right for tensors with elements: backward divides by a size that is 0 here (a mean of nothing), or leaves new "
    "memory unwritten where there is nothing to do; let it return zeros"
)
# The properties about layouts.
_OF_LAYOUTS = ("FWD-LAYOUT", "VJP-COTANGENT-LAYOUT")
# The other shapes in which a layout is tried.
_SHAPES = 3
# How far a point moves to show whether outputs change with it.
_MOVED = 2.0**-8

# So many calls with equal indices, and so many without, of those tried; the elements of a small tensor, its seeds, and
# how many calls of each kind are from one shape.
_CALLS, _TRIED, _SMALL, _SEEDS, _OF_A_SHAPE = 6, 400, 12, 16, 2
_REAL = {"complex128": "float64", "complex64": "float32"}
# What counts as equal where the numbers come from finite differences, and the step of these.
_CLOSE, _STEP = 1e-5, 2.0**-16

# Relative errors of the size of a rounding to float32, and the dtypes in which they say something.
_SINGLE = 2.0**-32, 2.0**-22
_DOUBLE = ("float64", "complex128")


def of_size(call: Call, got: Any, expected: Any) -> str:
    """The cause if a result in double precision is off by a rounding to float32; empty otherwise."""
    if call.dtype not in _DOUBLE or not all(isinstance(x, int | float | complex | np.number) for x in (got, expected)):
        return ""
    least, most = _SINGLE
    error = abs(got - expected)
    if not least * abs(expected) <= error <= most * abs(expected) or error == 0:
        return ""
    return (
        f"something is computed in float32: the relative error {error / abs(expected):.1g} is that of its rounding; a "
        "Python number that becomes a tensor (torch.tensor, full, where) is float32 unless dtype=x.dtype is given"
    )


def of_declared(declaration: Declaration) -> str:
    """The cause of a wrong slope if backward is declared to be another function's derivative; empty otherwise."""
    if declaration.soft is None:
        return ""
    return (
        "backward is not the derivative of the function declared as soft=: a factor, a sign, a condition; or soft= "
        "is not the function that is meant (finite differences see what it computes behind detach(), too)"
    )


def missing(example: Example) -> frozenset[int]:
    """The positions of arguments for which backward returns None, although the outputs change with them."""
    expected = example.expected
    gradients, points = example.run()[1], expected.points()
    moves = expected.directions(points)
    rows = zip(expected.slots, example.track, gradients, strict=True)
    none = [number for number, (_, tracked, g) in enumerate(rows) if tracked and g is None]
    return frozenset(expected.slots[n] for n in none if _changes(expected, points, n, moves[n]))


def _changes(expected: Expected, points: Sequence[Any], number: int, move: Any) -> bool:
    """Whether the outputs of the function to differentiate change if this point moves."""
    moved = [x + _MOVED * move if n == number else x for n, x in enumerate(points)]
    pairs = zip(expected.outputs_at(points), expected.outputs_at(moved), strict=True)
    return any(not np.array_equal(a, b, equal_nan=True) for a, b in pairs)


def of_missing(function: Own, example: Example, bench: Bench) -> str:
    """The cause if all that is wrong is that backward returns None for some arguments; empty otherwise."""
    slots = missing(example)
    if not slots or not bench.derives_but_for(example.call, slots):
        return ""
    names = " and ".join(f"argument {slot} ({function.arguments[slot].name})" for slot in sorted(slots))
    declared = " and ".join(repr(f"{function.declaration.arguments[slot]} constant") for slot in sorted(slots))
    return (
        f"backward returned None for {names}, whose gradient is not zero; return the gradient; if it is meant to have "
        f"no gradient, declare it constant: {declared}"
    )


def of_overflow(call: Call, about: str, got: Any, expected: Any) -> str:
    """The cause if a result is infinite where a number is expected; empty otherwise."""
    if not all(isinstance(x, int | float | complex | np.number) for x in (got, expected)):
        return ""
    if not np.isinf(got) or not np.isfinite(expected):
        return ""
    where = "forward" if about.startswith("FWD") else "backward"
    return (
        f"{where} divides by a number that is 0 or tiny, or a product, power or sum overflows in {call.dtype}; divide "
        "or scale first, or compute that part in a wider dtype"
    )


def of_draw(declaration: Declaration, got: Any, expected: Any) -> str:
    """The cause if one of a gradient and a slope is zero in a Function that draws random numbers; empty otherwise."""
    if not declaration.stochastic or (got == 0) == (expected == 0):
        return ""
    return (
        "backward seems to use another draw than forward: let forward save what it drew (save_for_backward), and let "
        "backward use that instead of drawing again"
    )


# What a factor counts where a mean takes the place of a sum, or the other way round.
_COUNTS: dict[str, Callable[[tuple[int, ...]], tuple[int, ...]]] = {
    "the number of elements of a tensor": lambda shape: (math.prod(shape),),
    "the length of a dimension": lambda shape: shape,
}
_MEAN = " (a mean for a sum, or the other way round)"


def of_factor(function: Function, example: Example) -> str:
    """The cause if gradients are wrong by a factor that is the same for all their entries; empty otherwise."""
    longer = (shapes for shapes in shape_tuples(function) if all(side > 2 for shape in shapes for side in shape))
    moved = list(islice(filter(None, (reshaped(example.call, shapes, function) for shapes in longer)), _SHAPES))
    # Values of another kind first: what is equal hides a factor of some entries.
    some = [[varied(call, function) for call in moved], moved] if moved else [[example.call]]
    found = (_of_factor(list(map(example.of, calls))) for calls in some)
    return next(filter(None, found), "")


def _of_factor(examples: Sequence[Example]) -> str:
    """The same for these examples."""
    found = [(each, _factors(each)) for each in examples]
    wrong = sorted(found[0][1])
    times = [_times([(each, factors.get(number)) for each, factors in found]) for number in wrong]
    if not wrong or "" in times:
        return ""
    words = [f"the gradient of {examples[0].input_names[n]} times {by}" for n, by in zip(wrong, times, strict=True)]
    counted = any(count in by for count in _COUNTS for by in times)
    return f"right would be {' and '.join(words)}" + _MEAN * counted


def _times(found: Sequence[tuple[Example, float | None]]) -> str:
    """By what a gradient of several calls has to be multiplied, as a number or what it counts; empty if by neither."""
    examples, factors = [each for each, _ in found], [factor for _, factor in found if factor is not None]
    if len(factors) < len(found):
        return ""
    if np.allclose(factors, factors[0], rtol=_CLOSE, atol=0):
        return f"{factors[0]:.6g}"
    for words, counts in _COUNTS.items():
        among = [[n for tensor in each.call.tensors for n in counts(tensor.shape)] for each in examples]
        for power, text in ((1, words), (-1, f"1 over {words}")):
            pairs = zip(factors, among, strict=True)
            if all(any(math.isclose(f, float(n) ** power, rel_tol=_CLOSE) for n in counted) for f, counted in pairs):
                return text
    return ""


def _factors(example: Example) -> dict[int, float]:
    """By what each wrong gradient has to be multiplied, by its number; empty if that does not make all right."""
    try:
        gradients = [None if g is None else example.implementation.numpy(g) for g in example.run()[1]]
        found = {n: _factor(example.expected, gradients, n) for n, g in enumerate(gradients) if g is not None}
    except Exception as raised:  # noqa: BLE001 - a user's Function may raise anything
        noticed(raised)
        return {}
    return {n: f for n, f in found.items() if f is not None and f != 1} if None not in found.values() else {}


def _factor(expected: Expected, gradients: Sequence[Any], number: int) -> float | None:
    """By what the gradient with this number has to be multiplied; None if nothing makes it right, or anything does."""
    points, weights, factors = expected.points(), expected.cotangents, list[float]()
    if np.count_nonzero(gradients[number]) < 2:
        return None
    for seed in range(2):
        moves = directions(points, seed=seed, bits=DOUBLE.bits)
        alone = tuple(u if n == number else None for n, u in enumerate(moves))
        estimate = slope(expected.outputs_at, points, alone, weights)
        claim = inner(tuple(gradients), alone)
        if estimate.reason is not None or claim == 0:
            return None
        factors.append(1.0 if judge(claim, estimate) is Verdict.AGREES else estimate.value / claim)
    return factors[0] if math.isclose(*factors, rel_tol=_CLOSE) else None


def of_constant_cotangents(example: Example, right: Callable[[Call], bool]) -> str:
    """The cause if a call is right where all entries of the cotangent are equal, and only there; empty otherwise.

    ``right`` says whether a call is not found to be wrong.
    """
    ramp, ones = (example.of(with_fill_of_cotangents(example.call, fill)) for fill in ("ramp", "ones"))
    used = [g for g in ramp.expected.cotangents if g is not None]
    if len(used) != 1 or used[0].size < 2 or right(ramp.call) or not right(ones.call):
        return ""
    numpy = example.implementation.numpy
    pairs = attempted(
        lambda: [(numpy(a), numpy(b)) for a, b in zip(ramp.run()[1], ones.run()[1], strict=True) if a is not None]
    )
    if not pairs:
        return ""
    seen = "right where all entries of grad_output are equal, and wrong where they are not: "
    for value, words in ((used[0].mean(), "the mean of grad_output"), *((v, "one entry of it") for v in used[0].flat)):
        if all(np.allclose(a, value * b, rtol=_CLOSE) for a, b in pairs):
            return f"{seen}backward uses {words} for all"
    return f"{seen}backward puts its entries in each other's places, or adds them up"


def of_equal_indices(function: Function, example: Example, right: Callable[[Call], bool]) -> str:
    """The cause if small calls are wrong where an index has equal entries, and only there; empty otherwise.

    ``right`` says whether a call is not found to be wrong.
    """
    call = example.call
    slots = repeating(function, call)
    if not slots:
        return ""
    found: dict[bool, list[bool]] = {True: [], False: []}
    for each in islice(_small(function, call, slots), _TRIED):
        kind = found[bool(repeating(function, each) & slots)]
        if len(kind) < _CALLS:
            kind.append(right(each))
        if False in found[False] or all(len(kind) == _CALLS for kind in found.values()):
            break
    enough = all(len(kind) > _CALLS // 2 for kind in found.values())
    # Equal entries that are masked, or beyond a length, may be right.
    if not enough or not all(found[False]) or sum(found[True]) > len(found[True]) // 2:
        return ""
    names = " and ".join(f"argument {slot} ({function.arguments[slot].name})" for slot in sorted(slots))
    seen = f"right where all entries of {names} are different, and wrong where some are equal"
    alike = (each for each in _small(function, call, slots) if repeating(function, each) & slots)
    wrong = next((each for each in alike if not right(each)), call)
    if not _takes_one_for_the_sum(example.of(wrong)):
        return seen
    return f"{seen}: one gradient is kept, where all have to be added: index_add_, scatter_add_, or accumulate=True"


def _takes_one_for_the_sum(example: Example) -> bool:
    """Whether each wrong entry of a gradient is what one entry of the cotangent adds to it, of several that do."""
    expected, numpy = example.expected, example.implementation.numpy
    try:
        gradients = [None if g is None else numpy(g) for g in example.run()[1]]
        found = [
            _is_one_of(g[place], _parts(expected, n, place))
            for n, g in enumerate(gradients) if g is not None
            for place in np.ndindex(g.shape)
        ]  # fmt: skip
    except Exception as raised:  # noqa: BLE001 - a user's Function may raise anything
        noticed(raised)
        return False
    return False not in found and True in found


def _is_one_of(got: Any, parts: Any) -> bool | None:
    """Whether an entry of a gradient is one of several parts, and not their sum; None if it is the sum."""
    scale = _CLOSE * max(1.0, float(np.max(np.abs(parts), initial=0.0)))
    if abs(got - parts.sum()) <= scale:
        return None
    several = parts[np.abs(parts) > scale]
    return len(several) > 1 and bool(np.any(np.abs(several - got) <= scale))


def _parts(expected: Expected, number: int, place: tuple[int, ...]) -> Any:
    """What each entry of the cotangents adds to an entry of a gradient, by central differences."""
    points = expected.points()
    step = np.zeros(np.shape(points[number]))
    step[place] = _STEP
    ahead, back = (
        expected.outputs_at([x + sign * step if n == number else x for n, x in enumerate(points)]) for sign in (1, -1)
    )
    rows = zip(expected.cotangents, ahead, back, strict=True)
    return np.concatenate([np.ravel(g * (a - b) / (2 * _STEP)) for g, a, b in rows if g is not None])


def _small(function: Function, call: Call, slots: Collection[int]) -> Iterator[Call]:
    """The call in small shapes, with several numbers in each: some repeat an index of these arguments, others do not.

    Where all do, there are more entries than values, and nothing tells a repetition from a length.
    """
    for shapes in shape_tuples(function):
        if all(0 < math.prod(shape) <= _SMALL for shape in shapes):
            moved = reshaped(call, shapes, function)
            calls = [] if moved is None else [replace(moved, seed=seed) for seed in range(_SEEDS)]
            alike, different = list[Call](), list[Call]()
            for each in calls:
                (alike if repeating(function, each).intersection(slots) else different).append(each)
            if alike and different:
                yield from (*alike[:_OF_A_SHAPE], *different[:_OF_A_SHAPE])


def of_conjugates(function: Function, call: Call, right: Callable[[Call], bool]) -> str:
    """The cause if a call is wrong in complex numbers, and not in real ones, if there are any; empty otherwise.

    ``right`` says whether a call is not found to be wrong.
    """
    if call.dtype in _REAL and _REAL[call.dtype] not in function.dtypes:
        return (
            "backward is not the derivative of forward: a factor that is not conjugated (g * x.conj() for x * y), a "
            "sign, a condition"
        )
    if call.dtype not in _REAL or not right(recast(call, _REAL[call.dtype], function)):
        return ""
    return (
        "right in real numbers: a factor of backward is not conjugated (g * x.conj() for x * y), or its real part, or "
        "a factor of 2, is missing or too many"
    )


def of_layouts(function: Function, call: Call, right: Callable[[Call], bool]) -> str:
    """The cause if, of all layouts, the lazy ones alone are wrong; empty otherwise.

    ``right`` says whether a call is not found to be wrong.
    """
    # Among equal entries nobody sees that others are read.
    call = with_fill_of_cotangents(with_fill(function, call, "dense"), "dense")
    layouts, plain = conj_neg_bits.layouts_of(call), conj_neg_bits.resolved(call)
    if not layouts or not right(plain) or not all(map(right, _in_other_layouts(function, plain))):
        return ""
    return (
        f"the memory of a tensor that is {' or '.join(sorted(layouts))} lazily is read, which holds other numbers; "
        f"{conj_neg_bits.advice(layouts)}; contiguous() is not enough"
    )


def _in_other_layouts(function: Function, call: Call) -> Iterator[Call]:
    """The call in each layout that is not lazy, in its own shapes and in some that have more orders."""
    larger = sorted(shape_tuples(function), key=lambda shapes: -sum(side > 1 for shape in shapes for side in shape))
    moved = (reshaped(call, shapes, function) for shapes in larger if not any(0 in shape for shape in shapes))
    others = [other for other, _ in zip(filter(None, moved), range(_SHAPES), strict=False)]
    for each in (call, *others):
        for layout in LAYOUTS:
            if not conj_neg_bits.advice([layout]):
                yield with_cotangents(each, layout)
                # An expanded input has other values, which its domain may not have.
                yield each if layout == "expanded" else with_inputs(each, layout)


def of_empty(function: Function, call: Call, right: Callable[[Call], bool]) -> str:
    """The cause if tensors without elements alone are wrong; empty otherwise.

    ``right`` says whether a call is not found to be wrong.
    """
    return NOT_ZERO if lacks_elements(function, call, right) else ""


def of_length(failure: Failure) -> str:
    """The cause if long tensors alone are wrong; in the test of these, what is wrong with parts of them."""
    part = failure.bench.wrong_part(failure.call)
    if failure.subject.variant == LONG:
        return part
    return "" if part else dict(PROPERTIES["VJP-FD"].of_variant)[LONG]


@dataclass(frozen=True)
class Hint:
    """A cause that the numbers of a failure of the properties ``about`` may show; of any property if there are none.

    ``asks`` gets the failure and the property that it is one of, and returns the cause, or nothing.
    """

    about: tuple[str, ...]
    asks: Callable[[Failure, str], str]
    concerns: Callable[[Failure], bool] = lambda _: True


_ANY, _SLOPE = (), ("VJP-FD",)


def _is_long(failure: Failure) -> bool:
    return failure.subject.variant in ("", LONG) and not is_short(failure.call)


def _other(failure: Failure) -> bool:
    # In the test of long tensors nothing else is looked for than their parts.
    return failure.subject.variant != LONG or is_short(failure.call)


# What a single number shows comes first, and then what other calls show.
HINTS = (
    # What is computed in float32 is wrong at ordinary values, too.
    Hint(_ANY, lambda f, _: of_size(f.call, *f.finding.compared), lambda f: f.subject.variant != SMALL),
    Hint(_ANY, lambda f, about: of_overflow(f.call, about, *f.finding.compared)),
    Hint(_SLOPE, lambda f, _: of_declared(f.function.declaration)),
    Hint(_SLOPE, lambda f, _: of_draw(f.function.declaration, *f.finding.compared)),
    Hint(_OF_LAYOUTS, lambda f, _: of_layouts(f.function, f.call, f.bench.passes)),
    Hint(_SLOPE, lambda f, _: of_length(f), _is_long),
    Hint(_SLOPE, lambda f, _: of_empty(f.function, f.plain, f.bench.derives), _other),
    Hint(_SLOPE, lambda f, _: of_missing(f.function, f.example, f.bench), _other),
    Hint(_SLOPE, lambda f, _: of_factor(f.function, f.example), _other),
    Hint(_SLOPE, lambda f, _: of_equal_indices(f.function, f.example, f.bench.derives), _other),
    Hint(_SLOPE, lambda f, _: of_constant_cotangents(f.example, f.bench.derives), _other),
    Hint(_SLOPE, lambda f, _: of_conjugates(f.function, f.plain, f.bench.derives), _other),
)


def likely(failure: Failure, about: str) -> str:
    """The likely cause of a wrong number, a failure of ``about``; empty if it is the property's usual one."""
    asked = (hint for hint in HINTS if about in (hint.about or (about,)) and hint.concerns(failure))
    return next(filter(None, (attempted(hint.asks, failure, about) for hint in asked)), "")
