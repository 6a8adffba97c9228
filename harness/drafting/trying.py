"""Which declarations fit: a few simple calls show what forward takes. The calls run in a process that may die."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Any

import numpy as np

from autograd_conformance.harness.check.bench import Bench
from autograd_conformance.harness.check.declaration.calling import adapted
from autograd_conformance.harness.check.declaration.declaration import Declaration, Own
from autograd_conformance.harness.check.discovery.nondeterminism import uses_random_numbers
from autograd_conformance.harness.check.discovery.returned import differentiable
from autograd_conformance.harness.check.refusals.declined import declined, in_words
from autograd_conformance.harness.check.refusals.exceptions import accidental, miscounted
from autograd_conformance.harness.outcomes import UsageProblem, one_line
from autograd_conformance.harness.testing.examined import own_frames, place
from autograd_conformance.harness.testing.example import Example
from autograd_conformance.harness.testing.settings import kept
from autograd_conformance.harness.testing.subject import Subject
from autograd_conformance.implementations.protocol import Implementation
from autograd_conformance.reference.definitions import REAL, Array, Function
from autograd_conformance.strategies.calls import Call, recast
from autograd_conformance.strategies.shapes import SIDES, shape_tuples
from autograd_conformance.strategies.simple import simple_call
from autograd_conformance.strategies.values import DOMAINS

# Shapes in which each declaration is tried, with ordinary numbers and with such that increase.
_CALLS = 8
# Lengths that show soon whether forward refuses others than those that were seen.
_FEW, _MANY = (1, 2, 3), 3
# If the first so many are refused, the others are not made.
_GIVEN_UP = 3
# So many calls are made with other seeds.
_DRAWN = 2
_RAMP = "ramp"
# What ordinary numbers do not become, unless something is singular there.
_LARGE = 1e9
# How far from a call outputs are looked at, to see whether they are constant.
_ASIDE = 0.01234
# The step of differences, and how far they are off at most.
_STEP, _ACCURATE, _SMALL = 1e-5, 1e-4, 1e-8
_MOSTLY = 0.75
# What an exception lacks, in words.
_NEEDED = (
    ("a process group: check it by in_processes", re.compile("process group|init_process_group", re.IGNORECASE)),
    ("a tensor of rank {0}", re.compile(r"not enough values to unpack \(expected (\d)")),
    ("a tensor of rank {0}", re.compile(r"[Ee]xpected (?:input to be |a )?(\d)[- ]?[dD]")),
    ("an object with the attribute {0}", re.compile(r"'(?:float|int|bool|Tensor)' object has no attribute '(\w+)'")),
    ("an argument that can be called", re.compile("object is not callable")),
)
# The characters of an exception that are shown.
_LONG = 300
# How much larger numbers are than those of a trial, to see whether all are returned unchanged.
_FAR = -1e4


@dataclass(frozen=True)
class Fit:
    """What became of a few simple calls of a declaration.

    Of ``tried`` calls forward took so many, and backward gave gradients that fit in so many of these. ``why`` is what
    forward said of another one, and ``raised`` what backward did. ``constant`` are the positions of tensors for which
    backward returned None each time. ``surrogate`` says why gradients disagree with differences on purpose; empty if
    they agree, or nothing suggests it. ``stochastic`` says that random numbers are drawn, and ``refused`` what forward
    says of other calls that are declared.
    """

    tried: int
    taken: int = 0
    returned: int = 0
    why: str = ""
    raised: str = ""
    constant: tuple[int, ...] = ()
    surrogate: str = ""
    stochastic: bool = False
    refused: str = ""

    @property
    def whole(self) -> bool:
        """Whether forward took all of them."""
        return self.taken == self.tried > 0

    @property
    def fitting(self) -> bool:
        """Whether forward took all of them and of the others, and backward gave gradients that fit."""
        return self.whole and self.returned == self.taken and not self.refused

    @property
    def worth(self) -> tuple[Any, ...]:
        """What is larger for a declaration that fits better. A faulty backward may fit nowhere."""
        share = self.tried or 1
        return self.whole, self.fitting, self.returned / share, self.taken / share


def best(
    declarations: Iterable[Callable[[], Declaration]], implementation: Implementation, *, seconds: float
) -> tuple[int, Fit]:
    """The position of the declaration that fits best, the first of these, and what became of its calls.

    Whether its gradients are right does not count: that is for the check to say. No more are tried once one fits, or
    the time is over.
    """
    until = time.monotonic() + seconds
    found = (0, Fit(0, why="no declaration was tried"))
    for number, made in enumerate(declarations):
        if number and time.monotonic() > until:
            break
        try:
            fit = fits(made(), implementation)
        except UsageProblem as problem:
            fit = Fit(0, why=str(problem))
        if number == 0 or fit.worth > found[1].worth:
            found = (number, fit)
        if fit.fitting:
            break
    return found


def fits(declaration: Declaration, implementation: Implementation) -> Fit:
    """What becomes of a few simple calls."""
    subject = _subject(declaration, implementation)
    function = subject.function
    with kept(implementation):
        # Of many dimensions it takes long to enumerate all shapes.
        names = {letter for argument in function.arrays for letter in argument.dims if letter.isalpha()}
        calls = _calls(function, _FEW)[:_GIVEN_UP] if len(names) > _MANY else []
        results = [_result(subject, call) for call in calls]
        if not results or not all(each.refused for each in results):
            calls, results = _calls(function), []
            for call in calls:
                # Slopes say nothing of a declaration that does not fit.
                results.append(_result(subject, call, compared=not any(each.refused for each in results)))
                if len(results) == _GIVEN_UP and all(each.refused for each in results):
                    break
    taken = [each for each in results if not each.refused]
    returned = [each.gradients for each in taken if each.gradients is not None]
    slots = [n for n, argument in enumerate(function.arguments) if isinstance(argument, Array)]
    never = [n for n, column in zip(slots, zip(*returned, strict=True), strict=False) if not any(column)]
    why = next((each.told() for each in results if each.refused), "")
    tracked = {n for n, x in enumerate(function.arguments) if isinstance(x, Array) and not x.dtype and not x.constant}
    constant = tuple(n for n in never if n in tracked)
    surrogate = _surrogate([each for each in taken if each.slopes is not None])
    raised = next((each.told() for each in taken if each.raised), "")
    some = [call for call, each in zip(calls, results, strict=False) if not each.refused][:_DRAWN]
    stochastic = any(uses_random_numbers(subject.made(call)) for call in some)
    found = Fit(len(calls), len(taken), len(returned), why, raised, constant, surrogate, stochastic)
    return replace(found, refused=_refused(subject)) if found.fitting else found


def takes(declaration: Declaration, implementation: Implementation, *, infinite: bool = False) -> bool:
    """Whether forward takes all simple calls that are declared, and backward gives gradients that fit.

    Outputs may be ``infinite``.
    """
    subject = _subject(declaration, implementation)
    with kept(implementation):
        calls = _calls(subject.function, _FEW)
        results = (_result(subject, call, compared=False) for call in calls)
        fitting = all(
            (infinite and each.is_infinite) or (not each.refused and each.gradients is not None) for each in results
        )
    return bool(calls) and fitting and not _refused(subject)


def _subject(declaration: Declaration, implementation: Implementation) -> Subject:
    function = declaration.sketch(implementation)
    mine = adapted(implementation, declaration.treatment, function.body(None, None))
    return Subject(mine, function, implementation.devices()[0])


def _refused(subject: Subject) -> str:
    """Why forward refuses one of all simple calls that are declared; empty if it takes all.

    The declaration is a guess: what may be an accident of the code, such as an index out of range, may as well come of
    calls that it is not for.
    """
    with kept(subject.implementation):
        found, _ = declined(
            Bench(subject), subject.function.dtypes[0], lambda _: None, lambda raised: not accidental(raised)
        )
    return next((each.why for each in found), "")


def _surrogate(results: Sequence[_Result]) -> str:
    """Why gradients are no derivatives, and on purpose; empty if nothing suggests that."""
    wrong = [each for each in results if not each.agrees]
    # Of few elements others may be constant, too; and a step may be hit.
    large = sorted(results, key=lambda each: each.size)[len(results) // 2 :]
    flat = [each for each in large if each.is_flat]
    # At a kink the outputs may be constant on one side only: there the gradient may be 0, or may not.
    sloped = [each for each in flat if each.slopes is not None and _SMALL < abs(each.slopes[0]) < np.inf]
    if len(flat) >= _MOSTLY * len(large) and 4 * len(sloped) >= len(large) > 0:
        return "outputs are constant nearly everywhere, and gradients are not 0"
    if wrong and all(each.is_identity for each in results):
        return "the output is the input, and the gradient another one than the output's"
    return ""


def _calls(function: Function, sides: tuple[int, ...] = SIDES) -> list[Call]:
    """Simple calls of shapes of every size, the smallest first."""
    assert isinstance(function, Own)
    shapes = [s for s in shape_tuples(function, sides) if all(0 not in shape for shape in s)]
    spread = [*shapes[:3], *shapes[3 :: max(1, len(shapes) // _CALLS)]]
    calls = [simple_call(function, each, number) for number, each in enumerate(islice(spread, _CALLS))]
    return list(dict.fromkeys([*calls, *(_ramped(function, call) for call in calls)]))


def _ramped(function: Own, call: Call) -> Call:
    """The call with tensors that increase, where they may: as matrices these are singular."""
    domains = [DOMAINS[a.values].fills if isinstance(a, Array) and not a.dtype else () for a in function.arguments]
    pairs = zip(call.args, domains, strict=False)
    return replace(call, args=tuple(replace(x, fill=_RAMP) if _RAMP in fills else x for x, fills in pairs))


@dataclass(frozen=True)
class _Result:
    """What became of a call.

    ``refused`` says why forward refused it, ``raised`` what backward raised, ``told`` makes more words of it, and
    ``gradients`` say for each tensor whether backward returned one. ``slopes`` are the slope in some direction by the
    gradients, and by differences. ``is_flat`` says that a small step changes no output, and ``is_identity`` that the
    first output is the first tensor, also a large one. ``is_infinite`` says that it is refused for its numbers alone.
    """

    refused: str = ""
    raised: str = ""
    told: Callable[[], str] = str
    gradients: tuple[bool, ...] | None = None
    slopes: tuple[float, float] | None = None
    is_identity: bool = False
    is_flat: bool = False
    is_infinite: bool = False
    size: int = 0

    @property
    def agrees(self) -> bool:
        """Whether the slopes are the same, as far as differences can tell."""
        got, expected = self.slopes or (0.0, 0.0)
        return abs(got - expected) <= _ACCURATE * (abs(got) + abs(expected)) + _SMALL


def _result(subject: Subject, call: Call, *, compared: bool = True) -> _Result:
    """The result of a call in the first dtype of double and single precision that forward takes.

    If it is ``compared``, with the slopes.
    """
    dtypes = subject.function.dtypes
    tried = [dtype for dtype in dtypes if dtype in REAL[:2]] or dtypes[:1]
    results = [_in_dtype(subject, recast(call, dtype, subject.function), compared) for dtype in tried[:1]]
    if results[0].refused and tried[1:]:
        results.append(_in_dtype(subject, recast(call, tried[1], subject.function), compared))
    return min(results, key=lambda result: bool(result.refused))


def _in_dtype(subject: Subject, call: Call, compared: bool) -> _Result:
    implementation, example = subject.implementation, subject.made(call)
    try:
        outputs, pullback = implementation.vjp(example.f, example.primals, track=example.track)
        kinds = [implementation.describe(y) for y in outputs]
        flags = [differentiable(implementation, y, kind.dtype) for y, kind in zip(outputs, kinds, strict=True)]
        values = [np.asarray(implementation.numpy(y)) for y in outputs]
    except Exception as raised:  # noqa: BLE001 - a user's Function may raise anything
        return _Result(one_line(raised) or "nothing", told=partial(_told, subject, call, raised))
    if not all(map(_finite, values)):
        infinite = f"it returns numbers that are not finite, or above {_LARGE:g}"
        return _Result(infinite, told=lambda: f"{infinite}, for {_words(subject, call)}", is_infinite=True)
    if not any(flags):
        nothing = "it returns nothing differentiable"
        return _Result(raised=nothing, told=lambda: nothing)
    try:
        rng = np.random.default_rng(1)
        ends = [
            example.tensor(rng.uniform(0.5, 1.5, kind.shape), kind.dtype) if f else None
            for f, kind in zip(flags, kinds, strict=True)
        ]
        gradients = pullback(ends)
    except Exception as raised:  # noqa: BLE001
        # One of the wrong number is wrong whatever the arguments are.
        why = "" if miscounted(raised) else one_line(raised)
        return _Result(raised=why, told=partial(_told, subject, call, raised))
    returned = tuple(g is not None for g in gradients)
    if call.dtype != "float64" or not compared:
        return _Result(gradients=returned)
    try:
        return _compared(example, gradients, ends, returned)
    except Exception:  # noqa: BLE001
        return _Result(gradients=returned)


def _told(subject: Subject, call: Call, raised: Exception) -> str:
    """What a call raised, where, and which call it was."""
    at = place(own_frames(raised, subject.implementation))
    text = one_line(raised)
    missing = next((f"; it needs {what.format(*m.groups())}" for what, p in _NEEDED if (m := p.search(text))), "")
    return f"{text[:_LONG]}{f' (at {at})' * bool(at)} for {_words(subject, call)}{missing}"


def _words(subject: Subject, call: Call) -> str:
    return in_words(subject.function, call, frozenset())


def _compared(example: Example, gradients: Sequence[Any], ends: Sequence[Any], returned: tuple[bool, ...]) -> _Result:
    """The result, with slopes in some direction: by the gradients, and by central differences."""
    numpy, rng = example.implementation.numpy, np.random.default_rng(0)
    numbers = [n for n, tracked in enumerate(example.track) if tracked and gradients[n] is not None]
    values = {n: example.values[example.slots[n]] for n in numbers}
    along = {n: rng.uniform(-1, 1, x.shape) for n, x in values.items()}

    def at(distance: float) -> list[Any]:
        example.implementation.reseed(0)
        moved = {n: x + distance * along[n] for n, x in values.items()}
        return [numpy(y) for y, w in zip(example.given(moved).outputs(), ends, strict=True) if w is not None]

    above, below = at(_STEP), at(-_STEP)
    weights = [numpy(w) for w in ends if w is not None]
    expected = sum(float((w * (y - z)).sum()) for w, y, z in zip(weights, above, below, strict=True)) / (2 * _STEP)
    got = sum(float((numpy(gradients[n]) * along[n]).sum()) for n in numbers)
    large = {n: _FAR * x for n, x in values.items()}
    first = next(iter(values), None)
    same = first is not None and all(
        np.array_equal(numpy(example.given(each).outputs()[0]), each[first]) for each in (values, large)
    )
    # Round numbers are where outputs jump.
    flat = all(map(np.array_equal, at(_ASIDE), at(_ASIDE + _STEP)))
    return _Result(
        gradients=returned,
        slopes=(got, expected),
        is_identity=same,
        is_flat=flat,
        size=sum(x.size for x in values.values()),
    )


def _finite(values: Any) -> bool:
    return values.dtype.kind not in "fc" or bool((np.abs(values) < _LARGE).all())
