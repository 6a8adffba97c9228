"""What a call of a user's Function returns: whether it can be checked, and how precise it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from autograd_conformance.harness.testing.example import Example
from autograd_conformance.harness.testing.observe import copied
from autograd_conformance.harness.testing.own_faults import noticed
from autograd_conformance.harness.testing.subject import Subject
from autograd_conformance.implementations.protocol import Implementation, Unreadable
from autograd_conformance.reference.definitions import FLOATING, Output
from autograd_conformance.reference.rounding import PRECISION
from autograd_conformance.strategies.calls import Call


@dataclass(frozen=True)
class Returned:
    """The dtypes of the differentiable outputs of a call and of the gradients that backward returns.

    ``sparse`` says whether a gradient is a sparse tensor.
    """

    dtypes: tuple[str, ...] = ()
    sparse: bool = False


def returned(subject: Subject, call: Call, outputs: Sequence[Output]) -> Returned:
    """What comes back from a call; nothing if it raises."""
    example = Example(subject.implementation, replace(subject.function, outputs=tuple(outputs)), subject.cls, call)
    implementation = subject.implementation
    f, seen = example.observed()
    try:
        found, pullback = implementation.vjp(f, example.primals, track=example.track)
        rows = zip(found, outputs, strict=True)
        kinds = [implementation.describe(y) if output.differentiable else None for y, output in rows]
        received = pullback([None if k is None else example.tensor(ones(k), k.dtype) for k in kinds])
        gradients = [g for g in (*received, *seen.gradients) if g is not None]
        dtypes = [implementation.describe(g).dtype for g in gradients]
    except Exception as raised:  # noqa: BLE001 - the tests will report it
        noticed(raised)
        return Returned()
    sparse = any(map(implementation.unusual, gradients))
    return Returned((*(k.dtype for k in kinds if k is not None), *dtypes), sparse)


def left_alone(examples: Sequence[Example]) -> list[int]:
    """The positions of arguments that are declared to be changed in place, but in no call change or come back."""
    declared = examples[0].function.inplace if "inplace" in examples[0].implementation.capabilities else ()
    alone = [_left_alone(example) for example in examples] if declared else []
    return [slot for slot in declared if all(slot in each for each in alone)]


def _left_alone(example: Example) -> list[int]:
    implementation, slots = example.implementation, example.function.inplace
    outputs, dirty, versions = example.run_in_place()
    given = [implementation.numpy(example.primals[example.slots.index(slot)]) for slot in slots]
    return [
        slot
        for slot, x, before, value in zip(slots, dirty, versions, given, strict=True)
        if not any(y is x for y in outputs)
        and implementation.version(x) == before
        and np.array_equal(implementation.numpy(x), value, equal_nan=True)
    ]


def least_precise(dtype: str, others: Sequence[str]) -> str:
    """The least precise one of a dtype and others; names that are no floating dtypes do not count."""
    return max([dtype, *(other for other in others if other in PRECISION)], key=lambda each: PRECISION[each].unit)


def ones(kind: Any) -> Any:
    return np.ones(kind.shape)


def differentiable(implementation: Implementation, tensor: Any, dtype: str) -> bool:
    """Whether an output takes part in differentiation."""
    if "requires_grad" in implementation.capabilities:
        return implementation.requires_grad(tensor)
    return dtype in FLOATING


def strange(implementation: Implementation, outputs: Sequence[Any]) -> str:
    """Why outputs cannot be checked; empty if they can."""
    unread = unreadable(implementation, outputs)
    if unread:
        return f"it returns an output that cannot be checked: {unread}"
    for output in outputs:
        kind = implementation.unusual(output)
        if kind and differentiable(implementation, output, implementation.describe(output).dtype):
            return f"it returns a {kind} tensor that requires grad, which cannot be checked; return a dense tensor"
    return ""


def unreadable(implementation: Implementation, tensors: Sequence[Any]) -> str:
    """Why the values of a tensor are no array; empty if all are."""
    try:
        copied(implementation, tensors)
    except Unreadable as raised:
        return str(raised)
    except Exception as raised:  # noqa: BLE001 - the tests will report it
        noticed(raised)
        return ""
    return ""
