"""What a process was doing when it hung or died, left where another process finds it."""

from __future__ import annotations

import faulthandler
import json
import os
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from autograd_conformance.harness.memory import EATEN, leave_pid
from autograd_conformance.harness.outcomes import Drawn

HANG, DEATH = "Hang", "Death"

# Parts of the paths of files whose frames say nothing about the Function under test.
MACHINERY = ("execnet", "hypothesis", "_pytest", "pluggy", "xdist", os.path.join("harness", "marks.py"))


class BlackBox:
    """Keeps the running test's key and call in a file, and ends the process when a test exceeds its time limit.

    The watchdog and the handler of fatal signals write the stacks of all threads behind them. They work while a
    native loop holds the interpreter, as no watching thread would. Without a path stacks go to stderr and nothing
    else is kept.
    """

    def __init__(self, path: Path | None) -> None:
        self._keeps = path is not None
        # Opened before pytest captures stderr's descriptor.
        self._file = open(path, "wb", buffering=0) if path else os.fdopen(os.dup(2), "wb", buffering=0)  # noqa: SIM115
        self._test: dict[str, Any] = {}
        if path is not None:
            leave_pid(path)

    def watch_signals(self) -> None:
        """Write stacks when a fatal signal arrives. Call after pytest has installed its own handler."""
        if self._keeps:
            faulthandler.enable(file=self._file)

    def start(self, nodeid: str, key: dict[str, Any], time_limit: float) -> None:
        """A test begins; ``key`` is what its result line will start with."""
        self._test = {"nodeid": nodeid, "key": key}
        self.note("")
        if time_limit > 0:
            faulthandler.dump_traceback_later(time_limit, exit=True, file=self._file)

    def drawing(self, drawn: Drawn | None) -> None:
        """What is noted from now on is drawn in this way, None if nothing tells how."""
        self._test["drawn"] = asdict(drawn) if drawn else None

    def note(self, call: str) -> None:
        """A call begins."""
        if self._keeps:
            # A full disk costs the last words, and not the test.
            with suppress(OSError):
                self._file.seek(0)
                self._file.write((json.dumps({**self._test, "call": call}) + "\n").encode())
                self._file.truncate()

    def finish(self) -> None:
        """A test has ended."""
        faulthandler.cancel_dump_traceback_later()

    def close(self) -> None:
        """Nothing more will run."""
        if self._keeps:
            faulthandler.disable()
        self._file.close()


@dataclass(frozen=True)
class LastWords:
    """What a black box holds of a dead process: its test, the call, how that was drawn, and the stacks if any."""

    nodeid: str
    key: dict[str, Any]
    call: str
    stacks: tuple[str, ...]
    drawn: dict[str, Any] | None = None

    @property
    def frames(self) -> list[str]:
        """The innermost frames outside this suite's machinery, thread by thread."""
        kept = [line for line in self.stacks[1:] if not any(part in line for part in MACHINERY)]
        pairs = zip(kept, [*kept[1:], ""], strict=False)
        return [line for line, after in pairs if line.startswith(" ") or after.startswith(" ")]

    @property
    def kind(self) -> str:
        """Hang or Death."""
        return HANG if self.stacks and self.stacks[0].startswith("Timeout") else DEATH

    @property
    def cause(self) -> str:
        """What ended the process, as the stacks' first line says it."""
        if not self.stacks:
            return "the process ended without a word (os._exit, or killed from outside)"
        first = self.stacks[0]
        if first.startswith(EATEN):
            return f"the process was ended: {first[0].lower()}{first[1:]}"
        if self.kind == HANG:
            return f"did not finish within the time limit of {first[len('Timeout (') :].rstrip('!)')} (h:mm:ss)"
        return f"the process died: {first.removeprefix('Fatal Python error: ')}"


def last_words(path: Path) -> LastWords | None:
    """What the black box at ``path`` holds, None if it holds nothing readable."""
    try:
        first, *stacks = path.read_text(errors="replace").splitlines()
        test = json.loads(first)
    except (OSError, ValueError):
        return None
    return LastWords(**test, stacks=tuple(line for line in stacks if line.strip()))
