"""The memory layouts that a user's Function refuses: each one excuses no other layout, and no other argument."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from autograd_conformance.harness.check.bench import Bench
from autograd_conformance.harness.check.declaration.facts import RefusedLayout
from autograd_conformance.harness.check.refusals.exceptions import mistake
from autograd_conformance.harness.outcomes import one_line
from autograd_conformance.reference.definitions import Array, Function
from autograd_conformance.strategies import conj_neg_bits
from autograd_conformance.strategies.calls import Call, Tensor
from autograd_conformance.strategies.changes import with_argument
from autograd_conformance.strategies.layouts import suitable
from autograd_conformance.strategies.values import DOMAINS

# The most calls to try, those that can be stored in the most ways.
_CALLS = 4


def refused_layouts(bench: Bench, calls: Sequence[Call]) -> Iterator[RefusedLayout]:
    """The layouts that forward refuses, out of calls that it takes with contiguous tensors."""
    ranked = sorted(calls, key=lambda call: -sum(len(suitable(t.shape, t.dtype)) for t in call.tensors))
    known = set[tuple[int, str]]()
    for call in ranked[:_CALLS]:
        for argument, tensor in enumerate(call.args):
            if isinstance(tensor, Tensor):
                for layout in _possible(bench.function, argument, tensor):
                    why = _refusal(bench, _stored(call, argument, layout))
                    if why and (argument, layout) not in known:
                        known.add((argument, layout))
                        yield RefusedLayout(argument, layout, why)


def in_taken_layouts(call: Call, refused: Sequence[RefusedLayout]) -> Call:
    """The call with contiguous tensors where a layout is refused."""
    for each in refused:
        given = call.args[each.argument] if each.argument < len(call.args) else None
        if isinstance(given, Tensor) and given.layout == each.layout:
            call = _stored(call, each.argument, "contiguous")
    return call


def in_words(refused: Sequence[RefusedLayout]) -> Iterator[str]:
    """A sentence for the arguments that are refused in the same layouts with the same exception."""
    layouts: dict[tuple[int, str], list[str]] = {}
    for each in refused:
        layouts.setdefault((each.argument, each.why), []).append(each.layout)
    arguments: dict[tuple[str, ...], list[str]] = {}
    for (argument, why), names in layouts.items():
        arguments.setdefault((why, *names), []).append(str(argument))
    for (why, *names), numbers in arguments.items():
        which = f"arguments {', '.join(numbers)}" if len(numbers) > 1 else f"argument {numbers[0]}"
        undone = conj_neg_bits.advice(names)
        to_take = f"; to take them, {undone}" if undone else ""
        yield f"does not take {which} in the layouts {', '.join(names)}: {why.rstrip('.') if to_take else why}{to_take}"


def _possible(function: Function, argument: int, tensor: Tensor) -> Iterator[str]:
    declared = function.arguments[argument]
    assert isinstance(declared, Array)
    repeats = DOMAINS[declared.values].elementwise and declared.dtype is None
    for layout in suitable(tensor.shape, tensor.dtype):
        if layout != "contiguous" and (repeats or layout != "expanded"):
            yield layout


def _stored(call: Call, argument: int, layout: str) -> Call:
    return with_argument(call, argument, replace(call.args[argument], layout=layout))


def _refusal(bench: Bench, call: Call) -> str:
    """What forward raises; empty if that is nothing, or a mistake in the code, which the tests report."""
    raised = bench.raised_by_forward(call)
    return "" if raised is None or mistake(raised) else one_line(raised)[:300]
