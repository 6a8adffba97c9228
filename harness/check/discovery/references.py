"""What the reference that a user gave takes: tensors or arrays, and double precision."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from autograd_conformance.harness.check.bounds.noise import DTYPES
from autograd_conformance.harness.check.declaration.declaration import Declaration
from autograd_conformance.harness.outcomes import one_line
from autograd_conformance.harness.testing.attempts import attempted
from autograd_conformance.harness.testing.example import Example
from autograd_conformance.harness.testing.own_faults import noticed
from autograd_conformance.harness.testing.subject import Subject
from autograd_conformance.implementations.protocol import as_tuple
from autograd_conformance.strategies.calls import Call, recast

# What a reference of a Function of half precision may be written for.
_WIDE = ("float64", "float32")


def composite_reference(declaration: Declaration, subject: Subject, calls: Sequence[Call], count: int) -> bool:
    """Whether the reference takes tensors; if not, it takes NumPy arrays.

    Raises UsageProblem if it takes neither in any of the calls, or does not return ``count`` outputs.
    """
    if declaration.reference is None:
        return True
    problems = []
    for call in (*calls, *(wide for narrow in calls for wide in _widened(subject, narrow))):
        tried = _referred(declaration, subject, call)
        if isinstance(tried, str):
            problems.append(tried)
            continue
        composite, returned = tried
        if returned != count:
            some = "1 output" if returned == 1 else f"{returned} outputs"
            raise declaration.problem(f"its reference returns {some}, but the Function returns {count}")
        return composite
    raise declaration.problem(
        f"its reference took no call that was tried, neither with tensors nor with arrays: {problems[0]}"
    )


def refers_in(declaration: Declaration, subject: Subject, call: Call, *, composite: bool) -> str:
    """The most precise dtype that the reference takes and does not round, if the Function takes half precision only.

    ``composite`` says whether it takes tensors: arrays of NumPy are in double precision.
    """
    reference, implementation = declaration.reference, subject.implementation
    for wide in _widened(subject, call) if reference is not None else ():
        if not composite:
            return wide.dtype
        example = subject.made(wide)
        outputs = attempted(_outputs, reference, example)
        if outputs and all(implementation.describe(y).dtype in _WIDE for y in outputs):
            return wide.dtype
    return ""


def _widened(subject: Subject, call: Call) -> list[Call]:
    """A call in half precision alone, in each dtype that its reference may be written for."""
    return [recast(call, dtype, subject.function) for dtype in _WIDE if call.dtype in DTYPES]


def _outputs(reference: Callable[..., Any], example: Example) -> Any:
    return example.implementation.vjp(lambda *xs: reference(*example.merged(xs)), example.primals, track=example.track)[
        0
    ]


def _referred(declaration: Declaration, subject: Subject, call: Call) -> tuple[bool, int] | str:
    """Whether the reference takes a call's tensors, and the number of its outputs; or why it does not take the call."""
    reference, example, errors = declaration.reference, subject.made(call), []
    assert reference is not None
    keep = subject.implementation.is_tensor
    try:
        outputs = _outputs(reference, example)
        if all(map(keep, outputs)):
            return True, len(outputs)
        errors.append("with tensors it returned something else than tensors")
    except Exception as raised:  # noqa: BLE001 - a user's function may raise anything
        noticed(raised)
        errors.append(f"with tensors it raised {one_line(raised)}")
    try:
        values = as_tuple(reference(*example.expected.reference_arguments(exact=True)))
        if not any(map(keep, values)) and all(hasattr(y, "shape") for y in values):
            return False, len(values)
        errors.append("with NumPy arrays it returned something else than arrays")
    except Exception as raised:  # noqa: BLE001
        noticed(raised)
        errors.append(f"with NumPy arrays it raised {one_line(raised)}")
    return "; ".join(errors)
