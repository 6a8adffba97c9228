"""A display of a run's progress at the foot of a terminal."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TextIO

from rich import live
from rich.console import Console, ConsoleDimensions, Group
from rich.padding import Padding
from rich.progress_bar import ProgressBar
from rich.text import Text

if TYPE_CHECKING:
    from autograd_conformance.harness.progress import Progress

# Refreshes a second, lines for what is running, shortfalls that are named.
_RATE = 4
_RUNNING = 8
_LAST = 3
_WIDEST = 60


class _Terminal(Console):
    """A terminal whose cursor stays visible: a run that is killed leaves nothing to be put right."""

    def show_cursor(self, show: bool = True) -> bool:  # noqa: ARG002
        return False


class Live:
    """The display; what others write to the terminal meanwhile goes above it."""

    def __init__(self, progress: Progress, terminal: Any, stream: TextIO) -> None:
        self._progress, self._stream = progress, stream
        self._console = _Terminal(file=stream, force_terminal=True)
        self._live = live.Live(
            console=self._console, get_renderable=self._picture, refresh_per_second=_RATE, transient=True,
            redirect_stdout=False, redirect_stderr=False,
        )  # fmt: skip
        self._measure()
        self._writer, self._begun = terminal._tw, ""
        terminal.flush()
        self._writer.write = self._above
        self._live.start()

    def tell(self, line: str) -> None:
        self._console.print(Text(line), soft_wrap=True)

    def refresh(self) -> None:
        pass  # it refreshes itself

    def stop(self) -> None:
        self._live.stop()
        del self._writer.write
        self._stream.close()

    def _above(self, text: str, **_: Any) -> None:
        """Write whole lines above the display; a line that is rewritten in place would not last, and is left out."""
        if text.startswith("\r"):
            return
        *lines, self._begun = (self._begun + text).split("\n")
        for line in lines:
            self.tell(line)

    def _measure(self) -> None:
        """Ask the terminal itself for its size: pytest captures the descriptors that rich would ask."""
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
        short = self._progress.short[-_LAST:]
        lines += [f"short: {', '.join(reversed(short))}"] if short else []
        texts = [Text(line, no_wrap=True, overflow="ellipsis") for line in lines]
        # Padding makes a line of the bar.
        return Group(Padding(ProgressBar(total=total, completed=done, width=width), 0), *texts)
