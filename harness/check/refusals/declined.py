"""Calls that a declaration describes and forward refuses: they are left out, and the declaration does not fit.

An exception is no fault of the gradient. But what was refused by mistake must be read: nobody gets a green check
without a declaration that fits.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from autograd_conformance.harness.check.declaration.facts import Declined, facts_of
from autograd_conformance.harness.check.refusals.exceptions import deliberate
from autograd_conformance.harness.outcomes import one_line
from autograd_conformance.harness.reports.ndjson import Line, test_of
from autograd_conformance.harness.reports.reading import constant
from autograd_conformance.harness.testing.attempts import raised_by
from autograd_conformance.harness.testing.examined import own_frames, place
from autograd_conformance.harness.testing.subject import Subject
from autograd_conformance.reference.definitions import Array, Function, Shapes, Static
from autograd_conformance.strategies.calls import Call, Cotangent, Tensor, contiguous
from autograd_conformance.strategies.shapes import shape_tuples
from autograd_conformance.strategies.values import DOMAINS

# The most choices of other arguments to try in each shape, and the seconds for all of them.
_CHOICES, _SECONDS = 12, 3.0
TITLE = "DECLARED BUT REFUSED"
ADVICE = (
    "if forward should take such calls, fix it; if not, declare only what it takes: a named dimension in place of "
    "..., as in 'float[n]', lengths by sizes=, '2*d' for a multiple, fewer choices, or values as in 'float[n] positive'"
)
# The calls that are shown, and the characters of an exception.
_SHOWN, _LONG = 3, 300


def kind(call: Call) -> str:
    """The shapes of a call and its arguments that are not tensors."""
    return repr(tuple(each.shape if isinstance(each, Tensor) else each for each in call.args))


def declined(
    subject: Subject,
    dtype: str,
    note: Callable[[Call], None],
    refusal: Callable[[Exception], bool] = deliberate,
) -> tuple[tuple[Declined, ...], str]:
    """What forward refuses of simple calls in the shapes that are declared; and how many were tried, if not all.

    ``refusal`` says whether an exception of forward is one.
    """
    cut = ""
    found: dict[tuple[str, ...], list[tuple[Call, str]]] = {}
    tried, until = 0, time.monotonic() + _SECONDS
    for call in _kinds(subject.function, dtype):
        if time.monotonic() > until:
            cut = f"calls tried for what forward refuses: the first {tried} (all of them take too long)"
            break
        tried += 1
        note(call)
        raised = raised_by_forward(subject, call)
        # What is refused for its values is drawn in the tests.
        if raised is not None and refusal(raised) and not _takes(subject, call):
            why, at = one_line(raised)[:_LONG], place(own_frames(raised, subject.implementation))
            found.setdefault((type(raised).__name__, at, constant(why)), []).append((call, why))
    rows = [(refused[0][1], at, [call for call, _ in refused]) for (_, at, _), refused in found.items()]
    function = subject.function
    return tuple(
        Declined(why, at, tried, tuple(map(kind, each)), _shown(function, each)) for why, at, each in rows
    ), cut


def _shown(function: Function, refused: Sequence[Call]) -> tuple[str, ...]:
    """Some refused calls in words, first one of each rank."""
    ranks = dict[tuple[int, ...], Call]()
    for call in refused:
        ranks.setdefault(tuple(len(tensor.shape) for tensor in call.tensors), call)
    kinds = frozenset(map(kind, refused))
    words = dict.fromkeys(in_words(function, call, kinds) for call in (*ranks.values(), *refused))
    return tuple(itertools.islice(words, _SHOWN))


def raised_by_forward(subject: Subject, call: Call) -> Exception | None:
    """What forward raises for a call."""
    return raised_by(lambda: subject.made(call).outputs())


def refuses(subject: Subject, call: Call, raised: Exception) -> bool:
    """Whether forward refuses a call that is declared, for its values or in a shape that was not tried before.

    What forward refuses only after other calls is a fault: the Function keeps something of them.
    """
    if not deliberate(raised):
        return False
    by_forward = raised_by_forward(subject, contiguous(call))
    if by_forward is None:
        # The many calls of an average have values of their own.
        return subject.variant == "averages" and "forward" in [
            f.name for f in own_frames(raised, subject.implementation)
        ]
    if not deliberate(by_forward):
        return False
    # What forward took before, it refuses for its values; what no trial was about, for any reason.
    return _takes(subject, call) or not _was_tried(subject.function, call)


def _takes(subject: Subject, call: Call) -> bool:
    """Whether forward takes the call with some ordinary values."""
    fills = {fill for argument in subject.function.arguments for fill in _fills(argument)}
    return any(raised_by_forward(subject, _filled(subject.function, call, fill)) is None for fill in sorted(fills))


def _fills(argument: Array | Static) -> Sequence[str]:
    return DOMAINS[argument.values].fills if isinstance(argument, Array) and argument.dtype is None else ()


def _was_tried(function: Function, call: Call) -> bool:
    shapes = tuple(tensor.shape for tensor in call.tensors)
    alike = (
        (kind(each) for each in _in_shapes(function, shapes, call.dtype)) if shapes in shape_tuples(function) else ()
    )
    return facts_of(function).tried_all and kind(call) in alike


def lines(found: Sequence[Declined]) -> Iterator[tuple[int, str]]:
    """What was refused, as lines with the columns by which they are indented."""
    if not found:
        return
    count = sum(len(each.kinds) for each in found)
    share = f"{count} of {found[0].tried} kinds of calls"
    yield 2, f"{TITLE}: forward refuses {share} that the declaration describes; they are left out"
    for each in found:
        yield 4, each.why + (f" (at {each.at})" if each.at else "")
        some = "for instance " * (len(each.kinds) > len(each.shown))
        yield 4, f"{some}with {'; '.join(each.shown)}"
    yield 4, ADVICE


def lines_of_results(results: Sequence[Line], known: Sequence[Declined]) -> Iterator[tuple[int, str]]:
    """What forward refused in tests alone, each exception once, as `lines` writes what is ``known``."""
    found: dict[tuple[str, str], tuple[Mapping[str, str], list[str]]] = {}
    for line in results:
        got = line["declined"]
        found.setdefault((got["at"], constant(got["got"][:_LONG])), (got, []))[1].append(test_of(line))
    for each in known:
        found.pop((each.at, constant(each.why)), None)
    for result, tests in found.values():
        at = f" (at {result['at']})" if result["at"] else ""
        yield 2, f"{TITLE}: forward refuses a call that the declaration describes; such calls are left out"
        yield 4, f"{result['got'][:_LONG]}{at}"
        yield 4, f"call: {result['call']}"
        yield 4, f"met in: {', '.join(dict.fromkeys(tests))}"
        yield 4, ADVICE


def fitting(shapes: Iterable[Shapes], function: Function, refused: frozenset[str], dtype: str) -> tuple[Shapes, ...]:
    """The shapes in which something is not known to be refused."""
    return tuple(
        each for each in shapes if any(kind(call) not in refused for call in _in_shapes(function, each, dtype))
    )


def _kinds(function: Function, dtype: str) -> Iterator[Call]:
    for shapes in shape_tuples(function):
        if not any(0 in shape for shape in shapes):
            yield from _in_shapes(function, shapes, dtype)


def _in_shapes(function: Function, shapes: Shapes, dtype: str) -> Iterator[Call]:
    """A simple call in these shapes for each choice of the other arguments."""
    statics = [a.choices(shapes) for a in function.arguments if not isinstance(a, Array)]
    for drawn in itertools.islice(itertools.product(*statics), _CHOICES):
        yield Call(function.name, simple_arguments(function, shapes, drawn, dtype), (Cotangent(),))


def simple_arguments(function: Function, shapes: Shapes, others: Iterable[Any], dtype: str) -> tuple[Any, ...]:
    """Tensors that no Function has a good reason to refuse, and the other arguments, each in its place."""
    given, chosen = iter(shapes), iter(others)
    return tuple(
        simple_tensor(a, next(given), dtype) if isinstance(a, Array) else next(chosen) for a in function.arguments
    )


def simple_tensor(argument: Array, shape: tuple[int, ...], dtype: str) -> Tensor:
    """A contiguous tensor of ordinary values."""
    fill = "ones" if argument.dtype is not None else DOMAINS[argument.values].fills[-1]
    return Tensor(shape, argument.kind(dtype), argument.differentiable, fill=fill)


def _filled(function: Function, call: Call, fill: str) -> Call:
    """The contiguous call with these values, where an argument has them, and with other ordinary ones elsewhere."""
    pairs = zip(function.arguments, contiguous(call).args, strict=False)
    args = (
        replace(given, specials=(), fill=fill if fill in _fills(a) else simple_tensor(a, given.shape, call.dtype).fill)
        if isinstance(a, Array) and isinstance(given, Tensor)
        else given
        for a, given in pairs
    )
    return replace(call, args=tuple(args))


def in_words(function: Function, call: Call, refused: Collection[str]) -> str:
    """A refused call: its shapes, and those of its other arguments with which alone it is refused."""
    given = list(zip(function.arguments, call.args, strict=False))
    words = [f"{a.name} of shape {tensor.shape}" for a, tensor in given if isinstance(tensor, Tensor)]
    shapes = tuple(tensor.shape for tensor in call.tensors)
    for slot, (argument, value) in enumerate(given):
        if isinstance(argument, Array):
            continue
        others = (replace(call, args=(*call.args[:slot], v, *call.args[slot + 1 :])) for v in argument.choices(shapes))
        if not all(kind(other) in refused for other in others):
            words.append(f"{argument.name} = {value!r}")
    return ", ".join(words)
