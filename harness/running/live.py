"""A display of a run's progress at the bottom of a terminal."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Protocol, TextIO

from rich import live
from rich.console import Console, ConsoleDimensions, Group
from rich.padding import Padding
from rich.progress_bar import ProgressBar
from rich.text import Text

# Refreshes per second, and the most running tests and failures that are shown.
_RATE = 4
_RUNNING = 8
_LAST = 3
_WIDEST = 60


class _Terminal(Console):
    """A terminal whose cursor stays visible, so that a killed run does not leave it hidden."""

    def show_cursor(self, show: bool = True) -> bool:  # noqa: ARG002
        return False


class Course(Protocol):
    """How many tests there are, and how many have ended."""

    @property
    def done(self) -> int: ...
    @property
    def total(self) -> int: ...


class Shown(Protocol):
    """What the display shows."""

    @property
    def course(self) -> Course | None: ...
    @property
    def failed(self) -> Sequence[str]: ...
    def running(self) -> Sequence[tuple[str, float]]: ...
    def summary(self) -> str: ...


class Live:
    """The display; other text is written above it.

    ``alone`` says that it refreshes itself, by a thread. In a process that forks, call `refresh` instead.
    """

    def __init__(self, progress: Shown, stream: TextIO, *, alone: bool = True) -> None:
        self._progress, self._stream = progress, stream
        self._console = _Terminal(file=stream, force_terminal=True)
        self._live = live.Live(
            console=self._console, get_renderable=self._picture, refresh_per_second=_RATE, transient=True,
            auto_refresh=alone, redirect_stdout=False, redirect_stderr=False,
        )  # fmt: skip
        self._measure()
        self._live.start()

    def write(self, line: str) -> None:
        """Add a permanent line."""
        self._console.print(Text(line), soft_wrap=True)

    def refresh(self) -> None:
        """Show the current progress."""
        if not self._live.auto_refresh:
            self._live.refresh()

    def stop(self) -> None:
        """Remove the display."""
        self._live.stop()

    def _measure(self) -> None:
        """Set the size from the terminal itself: rich would use descriptors that pytest captures."""
        with suppress(OSError):
            found = os.get_terminal_size(self._stream.fileno())
            if found.columns and found.lines:
                self._console.size = ConsoleDimensions(found.columns, found.lines)

    def _picture(self) -> Group:
        self._measure()
        course = self._progress.course
        done, total = (course.done, course.total) if course else (0, 0)
        width = min(_WIDEST, self._console.width - 1)
        running = self._progress.running()
        lines = [self._progress.summary(), *(f"{seconds:4.0f} s  {name}" for name, seconds in running[:_RUNNING])]
        lines += [f"and {len(running) - _RUNNING} more"] if len(running) > _RUNNING else []
        failed = self._progress.failed[-_LAST:]
        lines += [f"failed: {', '.join(reversed(failed))}"] if failed else []
        texts = [Text(line, no_wrap=True, overflow="ellipsis") for line in lines]
        # Padding puts the bar on a line of its own.
        return Group(Padding(ProgressBar(total=total, completed=done, width=width), 0), *texts)


class OverPytest(Live):
    """The display in a process of pytest, whose own lines are written above it."""

    def __init__(self, progress: Shown, terminal: Any, stream: TextIO) -> None:
        self._writer, self._begun = terminal._tw, ""
        terminal.flush()
        super().__init__(progress, stream)
        self._writer.write = self._above

    def stop(self) -> None:
        super().stop()
        del self._writer.write
        self._stream.close()

    def _above(self, text: str, **_: Any) -> None:
        """Write complete lines above the display, except those that pytest would rewrite in place."""
        if text.startswith("\r"):
            return
        *lines, self._begun = (self._begun + text).split("\n")
        for line in lines:
            self.write(line)
