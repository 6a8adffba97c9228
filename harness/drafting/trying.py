"""Which declarations fit: a few simple calls show what forward takes. The calls run in a process that may die."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from autograd_conformance.harness.check.declaration.calling import adapted
from autograd_conformance.harness.check.declaration.declaration import Declaration
from autograd_conformance.harness.check.refusals.long_tensors import simple_call
from autograd_conformance.harness.outcomes import UsageProblem, one_line
from autograd_conformance.harness.testing.settings import kept
from autograd_conformance.harness.testing.subject import Subject
from autograd_conformance.implementations.protocol import Implementation
from autograd_conformance.reference.definitions import REAL
from autograd_conformance.strategies.calls import Call, recast
from autograd_conformance.strategies.shapes import shape_tuples

# Calls that each declaration gets.
_CALLS = 12


@dataclass(frozen=True)
class Fit:
    """How many simple calls of a declaration forward takes, out of how many, and what it says of another one."""

    taken: int
    tried: int
    why: str = ""

    @property
    def whole(self) -> bool:
        """Whether forward took all of them."""
        return self.taken == self.tried > 0


def best(
    declarations: Iterable[Callable[[], Declaration]], implementation: Implementation, *, seconds: float
) -> tuple[int, Fit]:
    """The position of the first declaration of which forward takes every simple call, or the most of them.

    No more are tried when the time is over.
    """
    until = time.monotonic() + seconds
    found = (0, Fit(0, 0, "no declaration was tried"))
    for number, made in enumerate(declarations):
        if number and time.monotonic() > until:
            break
        try:
            fit = fits(made(), implementation)
        except UsageProblem as problem:
            fit = Fit(0, 0, str(problem))
        if number == 0 or fit.taken * found[1].tried > found[1].taken * fit.tried or fit.whole > found[1].whole:
            found = (number, fit)
        if fit.whole:
            break
    return found


def fits(declaration: Declaration, implementation: Implementation) -> Fit:
    """How many of a few simple calls forward takes, and gives finite numbers for."""
    function = declaration.sketch(implementation)
    cls = function.body(None, None)
    mine = adapted(implementation, declaration.treatment, cls)
    subject = Subject(mine, function, implementation.devices()[0])
    shapes = [s for s in shape_tuples(function) if all(0 not in shape for shape in s)]
    spread = [*shapes[:3], *shapes[3 :: max(1, len(shapes) // _CALLS)]]
    calls = [simple_call(function, each, number) for number, each in enumerate(islice(spread, _CALLS))]
    with kept(implementation):
        refused = [why for call in calls if (why := _refused(subject, call, function.dtypes))]
    return Fit(len(calls) - len(refused), len(calls), next(iter(refused), ""))


def _refused(subject: Subject, call: Call, dtypes: Sequence[str]) -> str:
    """Why forward refuses a call in double or in single precision; empty if it takes it."""
    tried = [d for d in dtypes if d in REAL[:2]] or dtypes[:1]
    return min((_raised(subject, recast(call, dtype, subject.function)) for dtype in tried), key=bool)


def _raised(subject: Subject, call: Call) -> str:
    try:
        outputs = subject.made(call).outputs()
        values = [np.asarray(subject.implementation.numpy(y)) for y in outputs]
    except Exception as raised:  # noqa: BLE001 - a user's Function may raise anything
        return one_line(raised)
    return "" if all(map(_finite, values)) else f"it returns numbers that are not finite for {call}"


def _finite(values: Any) -> bool:
    return values.dtype.kind not in "fc" or bool(np.isfinite(values).all())
