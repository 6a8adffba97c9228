"""A terminal for tests: a process runs in it, and what its screen showed can be looked at."""

from __future__ import annotations

import codecs
import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from select import select
from typing import Any

from autograd_conformance.selftests.conftest import OUTSIDE

# What a program sends: a control sequence, an operating system command, a control character, or text.
_PIECE = re.compile(r"\x1b\[([?\d;]*)([A-Za-z])|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|([\x00-\x1f])|([^\x00-\x1f]+)")
# A control sequence that is not complete.
_BEGUN = re.compile(r"(?:\x1b(?:\[[?\d;]*)?)?$")


@dataclass
class Screen:
    """The lines that a terminal shows, those that were scrolled away included."""

    columns: int
    lines: list[list[str]] = field(default_factory=lambda: [[]])
    row: int = 0
    column: int = 0
    hidden: bool = False
    begun: str = ""

    def feed(self, text: str) -> None:
        """Do as a terminal does that is sent this text, which may end within a control sequence."""
        text = self.begun + text
        self.begun = _BEGUN.search(text)[0]  # type: ignore[index]
        text = text.removesuffix(self.begun)
        for found in _PIECE.finditer(text):
            number, command, control, plain = found.groups()
            if command:
                self._command(command, number)
            elif control:
                self._control(control)
            else:
                for character in plain or "":
                    self._put(character)

    def _command(self, command: str, number: str) -> None:
        if command == "A":
            self.row = max(0, self.row - int(number or 1))
        elif command == "K" and number in ("", "0"):
            del self.lines[self.row][self.column :]
        elif command == "K":
            self.lines[self.row].clear()
        elif command in "lh" and number == "?25":
            self.hidden = command == "l"
        elif command != "m":
            raise AssertionError(f"a sequence that is not known here: {number}{command}")

    def _control(self, control: str) -> None:
        if control == "\r":
            self.column = 0
        elif control == "\n":
            self.row += 1
            self.lines += [[]] * (self.row == len(self.lines))

    def _put(self, character: str) -> None:
        if self.column == self.columns:
            self.column = 0
            self._control("\n")
        line = self.lines[self.row]
        line += " " * (self.column - len(line))
        line[self.column : self.column + 1] = character
        self.column += 1

    @property
    def text(self) -> list[str]:
        """The lines, without blanks at their ends."""
        return ["".join(line).rstrip() for line in self.lines]


@dataclass
class Session:
    """A process that ran in a terminal: its exit status, all that it sent, and the screens that it showed.

    ``restored`` says that it left the terminal's settings as they were.
    """

    status: int
    sent: str
    screens: list[list[str]]
    screen: Screen
    restored: bool


def _attend() -> None:
    """Heed interrupts, which a process ignores that was started in the background."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def run(
    words: Sequence[str], folder: Any, *, columns: int = 80, environment: Mapping[str, str] | None = None,
    watch: Callable[[list[str], subprocess.Popen[bytes]], None] = lambda *_: None, seconds: float = 240,
) -> Session:  # fmt: skip
    """Run a command in a terminal; ``watch`` is called with every screen and the process."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    # The terminal itself knows its size.
    outside = {name: value for name, value in OUTSIDE.items() if name not in ("COLUMNS", "LINES")}
    environment = {**outside, "TERM": "xterm-256color", **(environment or {})}
    process = subprocess.Popen(
        words, cwd=folder, stdin=theirs, stdout=theirs, stderr=theirs, env=environment, start_new_session=True,
        preexec_fn=_attend,
    )  # fmt: skip
    os.close(theirs)
    settings = termios.tcgetattr(ours)
    screen, sent, screens = Screen(columns), "", []
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if not select([ours], [], [], 1)[0]:
            continue
        try:
            piece = os.read(ours, 65536)
        except OSError:  # all writers are gone
            break
        # A character may come in two pieces.
        text = decoder.decode(piece)
        sent += text
        screen.feed(text)
        screens.append(screen.text)
        watch(screen.text, process)
    else:
        process.kill()
    restored = termios.tcgetattr(ours) == settings
    os.close(ours)
    return Session(process.wait(), sent, screens, screen, restored)
