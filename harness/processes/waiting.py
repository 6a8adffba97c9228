"""What a run waits for: it says so on stderr when nothing has happened for a while.

Only a run of the command does; what is called here in other processes has no effect.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from autograd_conformance.harness.text import shown

# Seconds without any event after which a run says what it waits for, and again after twice the time. On a busy machine
# an import alone takes a third of them.
SECONDS = 30.0

_STEP = 0.5

What = str | Callable[[], str] | None


class Watch(threading.Thread):
    """Writes what the run waits for to a file that it opened before pytest took stderr."""

    def __init__(self, file: int, seconds: float) -> None:
        super().__init__(name="waiting", daemon=True)
        self._file, self._first = file, seconds
        self.what: What = None
        self.moved()

    def moved(self) -> None:
        """Something has happened."""
        self._since, self._next = time.monotonic(), self._first

    def run(self) -> None:
        while self in _WATCH:
            time.sleep(_STEP)
            self.look()

    def look(self) -> None:
        """Say what the run waits for, if it is time."""
        what, silent = self.what, time.monotonic() - self._since
        if what is None or silent < self._next:
            return
        self._next *= 2
        # What runs may end while it is asked for, and stderr may be full or closed.
        with suppress(OSError, RuntimeError, ValueError):
            named = what if isinstance(what, str) else what()
            os.write(self._file, f"still waiting after {silent:.0f} s for {shown(named)}\n".encode())


_WATCH: list[Watch] = []


@contextmanager
def watched() -> Iterator[None]:
    """A context in which the run of this process is watched."""
    with suppress(OSError):
        _WATCH[:] = [Watch(os.dup(2), SECONDS)]
        _WATCH[0].start()
    try:
        yield
    finally:
        _WATCH.clear()


def phase(what: What) -> None:
    """The run waits for this from now on; None if it does not wait, or says so itself."""
    for watch in _WATCH:
        watch.what = what
        watch.moved()


def moved() -> None:
    """Something has happened that the run waited for."""
    for watch in _WATCH:
        watch.moved()


@contextmanager
def during(what: What) -> Iterator[None]:
    """A context in which the run waits for this."""
    before = [watch.what for watch in _WATCH]
    phase(what)
    try:
        yield
    finally:
        phase(before[0] if before else None)
