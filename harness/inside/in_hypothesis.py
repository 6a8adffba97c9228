"""Checks within tests of Hypothesis, if the program has such: they are no part of its tests, nor of their time."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable
from typing import Any


def outside_of_tests() -> contextlib.AbstractContextManager[Any]:
    """A context in which tests of Hypothesis may be defined, also while the program runs one."""
    context = getattr(sys.modules.get("hypothesis.control"), "_current_build_context", None)
    found: contextlib.AbstractContextManager[Any] = contextlib.nullcontext()
    return found if context is None else context.with_value(None)


def leave_out_of_deadlines(spent: Callable[[], float]) -> None:
    """Let Hypothesis, if the program uses it, measure its tests without the time of the checks."""
    core = sys.modules.get("hypothesis.core")
    if core is not None and not isinstance(core.time, _Clock):
        core.time = _Clock(core.time, spent)  # type: ignore[attr-defined]


class _Clock:
    """The module `time`, with a perf_counter that stands still while a call is checked."""

    def __init__(self, module: Any, spent: Callable[[], float]) -> None:
        self._module, self._spent = module, spent

    def perf_counter(self) -> float:
        return float(self._module.perf_counter()) - self._spent()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._module, name)
