"""Calls that a declaration describes and forward refuses: they are left out, and the declaration does not fit.

An exception is no fault of the gradient. But what was refused by mistake must be read: nobody gets a green check
without a declaration that fits.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from autograd_conformance.harness.check.bench import Bench
from autograd_conformance.harness.check.declaration.facts import Declined, facts_of
from autograd_conformance.harness.check.refusals.exceptions import deliberate
from autograd_conformance.harness.outcomes import one_line
from autograd_conformance.harness.reports.ndjson import Line, test_of
from autograd_conformance.harness.reports.reading import constant
from autograd_conformance.harness.testing.examined import own_frames, place
from autograd_conformance.reference.definitions import Array, Function
from autograd_conformance.strategies.calls import Call, Tensor, contiguous
from autograd_conformance.strategies.changes import with_argument
from autograd_conformance.strategies.shapes import shape_tuples
from autograd_conformance.strategies.simple import filled, fills, in_shapes, kind, kinds

# The seconds for all calls that are tried.
_SECONDS = 3.0
TITLE = "DECLARED BUT REFUSED"
ADVICE = (
    "if forward should take such calls, fix it; if not, declare only what it takes: a named dimension in place of "
    "..., as in 'float[n]', lengths by sizes=, '2*d' for a multiple, fewer choices, or values as in 'float[n] positive'"
)
# The calls that are shown, and the characters of an exception.
_SHOWN, _LONG = 3, 300


def declined(
    bench: Bench,
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
    for call in kinds(bench.function, dtype):
        if time.monotonic() > until:
            cut = f"calls tried for what forward refuses: the first {tried} (all of them take too long)"
            break
        tried += 1
        note(call)
        raised = bench.raised_by_forward(call)
        # What is refused for its values is drawn in the tests.
        if raised is not None and refusal(raised) and not _takes(bench, call):
            why, at = one_line(raised)[:_LONG], place(own_frames(raised, bench.subject.implementation))
            found.setdefault((type(raised).__name__, at, constant(why)), []).append((call, why))
    rows = [(refused[0][1], at, [call for call, _ in refused]) for (_, at, _), refused in found.items()]
    function = bench.function
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


def refuses(bench: Bench, call: Call, raised: Exception) -> bool:
    """Whether forward refuses a call that is declared, for its values or in a shape that was not tried before.

    What forward refuses only after other calls is a fault: the Function keeps something of them.
    """
    if not deliberate(raised):
        return False
    by_forward = bench.raised_by_forward(contiguous(call))
    if by_forward is None:
        # The many calls of an average have values of their own.
        return bench.tested.variant == "averages" and "forward" in [
            f.name for f in own_frames(raised, bench.subject.implementation)
        ]
    if not deliberate(by_forward):
        return False
    # What forward took before, it refuses for its values; what no trial was about, for any reason.
    return _takes(bench, call) or not _was_tried(bench.function, call)


def _takes(bench: Bench, call: Call) -> bool:
    """Whether forward takes the call with some ordinary values."""
    ordinary = {fill for argument in bench.function.arguments for fill in fills(argument)}
    return any(bench.raised_by_forward(filled(bench.function, call, fill)) is None for fill in sorted(ordinary))


def _was_tried(function: Function, call: Call) -> bool:
    shapes = tuple(tensor.shape for tensor in call.tensors)
    alike = (kind(each) for each in in_shapes(function, shapes, call.dtype)) if shapes in shape_tuples(function) else ()
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


def in_words(function: Function, call: Call, refused: Collection[str]) -> str:
    """A refused call: its shapes, and those of its other arguments with which alone it is refused."""
    given = list(zip(function.arguments, call.args, strict=False))
    words = [f"{a.name} of shape {tensor.shape}" for a, tensor in given if isinstance(tensor, Tensor)]
    shapes = tuple(tensor.shape for tensor in call.tensors)
    for slot, (argument, value) in enumerate(given):
        if isinstance(argument, Array):
            continue
        others = (with_argument(call, slot, value) for value in argument.choices(shapes))
        if not all(kind(other) in refused for other in others):
            words.append(f"{argument.name} = {value!r}")
    return ", ".join(words)
