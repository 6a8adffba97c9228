"""What a terminal shows while `check` runs: the faults as they are found, and the progress."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import TYPE_CHECKING

import click

from autograd_conformance.harness.running.progress import refreshes
from autograd_conformance.harness.text import clock, shown

if TYPE_CHECKING:
    from autograd_conformance.harness.check.session.child_session import Following
    from autograd_conformance.harness.running.live import Live


class Display:
    """Lines on stdout, or with ``err`` on stderr, and below them the progress if stdout is a terminal."""

    # What `Live` shows: found faults are lines above it.
    failed: tuple[str, ...] = ()

    def __init__(self, *, err: bool = False) -> None:
        # Whether stdout is for another program.
        self._err = err
        # How many faults were found.
        self.faults = 0
        self._began = time.monotonic()
        self._following: Following | None = None
        self._finding_out = ""
        self._live: Live | None = None

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Show the progress within this context."""
        if self._err or not refreshes():
            yield
            return
        # Imported where it is used: most runs have no terminal.
        from autograd_conformance.harness.running.live import Live

        sys.stdout.flush()
        self._live = Live(self, sys.stdout, alone=False)
        try:
            yield
        finally:
            self._live.stop()
            self._live = None

    def find_out(self, name: str) -> None:
        """A Function is called to find out about it."""
        self._finding_out = name
        self.refresh()

    def follow(self, following: Following) -> None:
        """The checks begin."""
        self._following, self._finding_out = following, ""

    def found(self, lines: Iterable[str]) -> None:
        """Show a fault that was just found."""
        self.faults += 1
        self.write(lines)

    def write(self, lines: Iterable[str]) -> None:
        """Add permanent lines, at once and all together."""
        text = shown("\n".join(lines))
        if self._live is not None:
            self._live.write(text)
            sys.stdout.flush()
        else:
            click.echo(text, err=self._err)

    def refresh(self) -> None:
        """Show the current progress."""
        if self._live is not None:
            self._live.refresh()

    # What `Live` shows.

    @property
    def course(self) -> SimpleNamespace:
        """How many checks there are, and how many have ended."""
        done, total = (len(self._following.results), self._following.total) if self._following else (0, 0)
        return SimpleNamespace(done=done, total=total or 1)

    def running(self) -> list[tuple[str, float]]:
        """The check that runs, and for how many seconds."""
        now = self._following.running() if self._following else None
        return [now] if now else []

    def summary(self) -> str:
        """The progress in one line."""
        if self._finding_out:
            what = f"finding out about {self._finding_out}"
        elif self._following is None or not self._following.total:
            what = "preparing"
        else:
            what = f"{len(self._following.results)} of {self._following.total} checks"
        faults = f", {self.faults} fault{'s' if self.faults > 1 else ''}" if self.faults else ""
        return f"{what}{faults}, {clock(time.monotonic() - self._began)}"
