"""The file of a process, with a line of JSON for all that is new there, so that a crash loses nothing."""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import sys
import threading
import time
from collections.abc import Callable
from typing import Any


class Lines:
    """The file of this process in a folder; ``end`` writes what is known at the end, and ``forget`` forgets it.

    A child process that is forked has a file of its own.
    """

    def __init__(self, folder: str, *, end: Callable[[], None], forget: Callable[[], None]) -> None:
        self._folder, self._end, self._forget = folder, end, forget
        self._file: int | None = None
        self.ended = False
        self.lock = threading.RLock()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._begin_in_child)
        atexit.register(self.end)

    def write(self, **line: Any) -> None:
        """Write a line."""
        # Without a file or place on the disk the program goes on, and the line is lost.
        with self.lock, contextlib.suppress(OSError):
            if self._file is None:
                # Processes that replace one another have the same number.
                name = f"{time.time_ns()}-{os.getpid()}.ndjson"
                # Not by open(), which a test may have replaced.
                self._file = os.open(os.path.join(self._folder, name), os.O_WRONLY | os.O_APPEND | os.O_CREAT)
            os.write(self._file, (json.dumps(line) + "\n").encode())

    def _begin_in_child(self) -> None:
        # What the parent has seen is in the parent's file.
        self._file, self.ended = None, False
        self.lock = threading.RLock()
        self._forget()
        if "multiprocessing.util" in sys.modules:
            # Such a child leaves without what is registered at exit.
            sys.modules["multiprocessing.util"].Finalize(None, self.end, exitpriority=0)

    def end(self) -> None:
        """Write what is known at the end, once."""
        with self.lock, contextlib.suppress(Exception):
            if not self.ended:
                self._end()
            self.ended = True
