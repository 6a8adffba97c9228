"""Black boxes: files that show another process what a process was doing when it hung or died."""

from __future__ import annotations

import faulthandler
import json
import os
import re
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

from autograd_conformance.harness.outcomes import DEATH, HANG, Drawn
from autograd_conformance.harness.processes.memory import OUT_OF_MEMORY, leave_pid

# Parts of paths: frames in these files do not help to find a fault in the Function under test.
MACHINERY = ("execnet", "hypothesis", "_pytest", "pluggy", "xdist", os.path.join("harness", "testing", "marks.py"))


# The first word of the stacks when the time limit is exceeded.
TIMEOUT = "Timeout"

# The least seconds between two beginnings of a time limit.
_PERIOD = 0.5

# Seconds for a call that is listed not to end.
_LISTED = 30.0

# The first line of a thread in faulthandler's stacks, and a frame.
_THREAD = re.compile(r"[Tt]hread (0x[0-9a-f]+)")
_FRAME = re.compile(r'File "(?P<file>.*)", line \d+ in (?P<function>.*)')


def _no_call(_: str) -> bool:
    return False


class BlackBox:
    """Keeps the running test's key and call in a file, and ends the process when a test exceeds its time limit.

    The watchdog and the handler of fatal signals append the stacks of all threads. Unlike a Python thread, they work
    while native code holds the interpreter. Without a path, stacks go to stderr and nothing else is kept.
    """

    def __init__(self, path: Path | None) -> None:
        self._keeps = path is not None
        # Opened before pytest captures stderr's descriptor.
        self._file = open(path, "wb", buffering=0) if path else os.fdopen(os.dup(2), "wb", buffering=0)  # noqa: SIM115
        self._test: dict[str, Any] = {}
        self._time_limit, self._armed = 0.0, 0.0
        self._may_hang: Callable[[str], bool] = _no_call
        self._hurries = False
        if path is not None:
            leave_pid(path)

    def watch_signals(self) -> None:
        """Write stacks when a fatal signal arrives. Call after pytest has installed its own handler."""
        if self._keeps:
            faulthandler.enable(file=self._file)

    def start(
        self, nodeid: str, key: dict[str, Any], time_limit: float, may_hang: Callable[[str], bool] = _no_call
    ) -> None:
        """A test begins; ``key`` has the first fields of its result line. Calls that ``may_hang`` get less time."""
        self._test = {"nodeid": nodeid, "key": key, "limit": time_limit, "thread": threading.get_ident()}
        self._time_limit, self._may_hang, self._hurries = time_limit, may_hang, False
        self._arm()
        self.note("")

    def _arm(self) -> None:
        self._armed = time.monotonic()
        self._allow(self._time_limit)

    def _allow(self, seconds: float) -> None:
        if self._time_limit > 0:
            faulthandler.dump_traceback_later(seconds, exit=True, file=self._file)

    def goes_on(self) -> None:
        """The running test goes on, and does not hang: its time limit begins again."""
        if time.monotonic() - self._armed >= _PERIOD:
            self._arm()

    def drawing(self, drawn: Drawn | None) -> None:
        """Say how the next calls are drawn; None if they cannot be drawn again."""
        self._test["drawn"] = asdict(drawn) if drawn else None

    def note(self, call: str) -> None:
        """A call begins."""
        hurried, self._hurries = self._hurries, self._may_hang(call)
        if hurried or self._hurries:
            left = max(_PERIOD, self._armed + self._time_limit - time.monotonic())
            self._test["limit"] = min(_LISTED, self._time_limit) if self._hurries else self._time_limit
            self._allow(min(_LISTED, left) if self._hurries else left)
        if self._keeps:
            # On a full disk the test goes on without a black box.
            with suppress(OSError):
                self._file.seek(0)
                self._file.write((json.dumps({**self._test, "call": call}) + "\n").encode())
                self._file.truncate()

    def finish(self) -> None:
        """A test has ended."""
        faulthandler.cancel_dump_traceback_later()

    def close(self) -> None:
        """Close the file."""
        if self._keeps:
            faulthandler.disable()
        self._file.close()


@dataclass(frozen=True)
class LastWords:
    """The black box of a dead process: its test, the call, how that was drawn, and the stacks if any.

    ``limit`` is the time that the call had, and ``thread`` the one that ran the test.
    """

    nodeid: str
    key: dict[str, Any]
    call: str
    stacks: tuple[str, ...]
    drawn: dict[str, Any] | None = None
    limit: float = 0.0
    thread: int = 0

    @property
    def frames(self) -> list[str]:
        """The innermost frames of each thread, without those in `MACHINERY`."""
        kept = [line for line in self.stacks[1:] if not any(part in line for part in MACHINERY)]
        pairs = zip(kept, [*kept[1:], ""], strict=False)
        return [line for line, after in pairs if line.startswith(" ") or after.startswith(" ")]

    @property
    def at(self) -> str:
        """Where the test stood, as in ``mlx.py in as_numpy``; empty if that is not known."""
        for header, innermost in pairwise(self.stacks):
            thread, frame = _THREAD.search(header), _FRAME.search(innermost)
            if thread and frame and int(thread[1], 16) == self.thread:
                return f"{Path(frame['file']).name} in {frame['function']}"
        return ""

    @property
    def kind(self) -> str:
        """Hang or Death."""
        return HANG if self.stacks and self.stacks[0].startswith(TIMEOUT) else DEATH

    @property
    def cause(self) -> str:
        """Why the process ended, from the first line of the stacks."""
        if not self.stacks:
            return "the process ended without a word (os._exit, or killed from outside)"
        first = self.stacks[0]
        if first.startswith(OUT_OF_MEMORY):
            return f"the process was ended: {first[0].lower()}{first[1:]}"
        if self.kind == HANG:
            return f"did not finish within the time limit of {timedelta(seconds=self.limit)} (h:mm:ss)"
        return f"the process died: {first.removeprefix('Fatal Python error: ')}"


def last_words(path: Path) -> LastWords | None:
    """The content of the black box at ``path``; None if it cannot be read."""
    try:
        first, *stacks = path.read_text(errors="replace").splitlines()
        test = json.loads(first)
    except (OSError, ValueError):
        return None
    return LastWords(**test, stacks=tuple(line for line in stacks if line.strip()))
