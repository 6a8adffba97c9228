"""Faults of outputs that are views."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch

from autograd_conformance.selftests.planted_clauses.inplace import (
    after_forward,
    among,
    outputs_of,
    tensors_of,
    with_outputs,
)
from autograd_conformance.selftests.planted_clauses.intercept import around_apply
from autograd_conformance.selftests.planting import Fault


@contextmanager
def with_returned(change: Callable[[Any, Any, int, Sequence[Any]], Any]) -> Iterator[None]:
    """Each output becomes ``change(output, the argument that forward returned as it, position, arguments)``."""
    returned: list[list[Any]] = []

    def note(ctx: Any, arguments: Sequence[Any], outputs: Any) -> None:
        known = tensors_of(arguments)
        returned.append([next((x for x in known if x is y), None) for y in outputs_of(outputs)])

    def changed(output: Any, position: int, arguments: Sequence[Any]) -> Any:
        return change(output, returned[-1][position], position, arguments)

    with after_forward(note), with_outputs(changed):
        yield


def _seen(output: Any, arguments: Sequence[Any]) -> list[Any]:
    """The arguments that the output is a view of."""
    return [x for x in arguments if output._is_view() and output._base is (x._base if x._is_view() else x)]


def _tracked_itself(output: Any, source: Any, *_: Any) -> Any:
    return source if source is not None and source.requires_grad else output


def _leaf_itself(output: Any, source: Any, *_: Any) -> Any:
    return source if source is not None and source.requires_grad and source.is_leaf else output


def _ordinary_view(output: Any, source: Any, *_: Any) -> Any:
    return output if source is None or not source.requires_grad else source.view_as(source)


def _fixed_itself(output: Any, source: Any, *_: Any) -> Any:
    return source if source is not None and not source.requires_grad else output


def _copied(output: Any, source: Any, *_: Any) -> Any:
    return output if source is None or source.requires_grad else output.clone()


def _view_by_strides(output: Any, source: Any, _: int, arguments: Sequence[Any]) -> Any:
    seen = _seen(output, arguments)
    if source is not None or not seen:
        return output
    return seen[0].as_strided(output.size(), output.stride(), output.storage_offset())


class _Copied(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x.clone()[...]

    @staticmethod
    def backward(ctx: Any, cotangent: Any) -> Any:
        return cotangent


def _view_of_a_copy(output: Any, source: Any, _: int, arguments: Sequence[Any]) -> Any:
    if source is not None or not _seen(output, arguments):
        return output
    return super(torch.autograd.Function, _Copied).apply(output)


def _copied_temporary(output: Any, source: Any, _: int, arguments: Sequence[Any]) -> Any:
    return output.clone() if output._is_view() and not _seen(output, arguments) else output


def _protects_the_first(original: Any, cls: Any, *args: Any) -> Any:
    outputs = original(cls, *args)
    views = [y for y in tensors_of(outputs_of(outputs)) if y._is_view()]
    return tuple(y.clone() if among(views[1:], y) else y for y in outputs) if len(views) > 1 else outputs


FAULTS = (
    Fault("VIEW-01", lambda: with_returned(_tracked_itself), neighbours=("VIEW-02", "VIEW-05")),
    Fault("VIEW-01", lambda: with_returned(_leaf_itself), words="a leaf comes back as itself"),
    Fault(
        "VIEW-01",
        lambda: with_returned(_ordinary_view),
        neighbours=("VIEW-05",),
        words="a returned input comes back as an ordinary view",
    ),
    Fault("VIEW-02", lambda: with_returned(_fixed_itself), neighbours=("VIEW-05",)),
    Fault(
        "VIEW-02",
        lambda: with_returned(_copied),
        neighbours=("VIEW-05",),
        words="a returned input comes back as a copy",
    ),
    Fault("VIEW-03", lambda: with_returned(_view_by_strides), neighbours=("VIEW-05",)),
    Fault(
        "VIEW-03",
        lambda: with_returned(_view_of_a_copy),
        neighbours=("VIEW-05",),
        words="changes of the base go unnoticed",
    ),
    Fault("VIEW-04", lambda: with_returned(_copied_temporary), neighbours=("VIEW-05",)),
    Fault("VIEW-05", lambda: around_apply(_protects_the_first), neighbours=("VIEW-02",)),
)
