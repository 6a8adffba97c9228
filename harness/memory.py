"""The memory limit: worker processes that use more are ended, from outside, before the machine has none left."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterable
from pathlib import Path

import psutil

# Bytes in a GiB.
GIB = 1024**3

# Share of the machine's memory that all workers together may use.
SHARE = 0.8

# Seconds between two looks at the workers.
_PERIOD = 0.1

EATEN = "Memory"


# Where a container's own limit stands: control groups of version 2 and 1.
_LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))


def default_limit(workers: int, limits: Iterable[Path] = _LIMITS) -> float:
    """GiB that each of so many workers may use: of the machine's memory, or of the container's if that is less."""
    there = [psutil.virtual_memory().total]
    for path in limits:
        # Without a limit the file says "max" or is not there.
        with contextlib.suppress(OSError, ValueError):
            there.append(int(path.read_text()))
    return round(float(SHARE * min(there)) / GIB / max(1, workers), 1)


class Guard(threading.Thread):
    """Ends the processes that use more than ``limit`` GiB; their black boxes in ``boxes`` say who they are and why.

    It watches from outside, since a process that allocates in native code runs no thread of its own.
    """

    def __init__(self, boxes: Path, limit: float) -> None:
        super().__init__(name="memory-guard", daemon=True)
        self._boxes, self._limit, self._ended = boxes, limit, threading.Event()

    def run(self) -> None:
        while not self._ended.wait(_PERIOD):
            for path in self._boxes.glob("*.pid"):
                # The box may be new, so that no number is in it yet, or be removed at any time.
                with contextlib.suppress(psutil.Error, OSError, ValueError):
                    self._look_at(path)

    def stop(self) -> None:
        """Watch no more."""
        self._ended.set()
        self.join()

    def _look_at(self, path: Path) -> None:
        number = int(path.read_text())
        if not psutil.pid_exists(number):
            # It may be another process's number by and by.
            path.unlink()
            return
        process = psutil.Process(number)
        used = process.memory_info().rss / GIB
        if used > self._limit:
            # Stopped first, so that it does not overwrite what is said of it.
            process.suspend()
            try:
                with path.with_suffix("").open("a") as box:
                    box.write(f"{EATEN} limit of {self._limit:g} GiB exceeded ({used:.1f} GiB in use)\n")
                path.unlink()
            finally:
                process.kill()


def leave_pid(box: Path) -> None:
    """Say whose black box that is."""
    box.with_suffix(".pid").write_text(str(os.getpid()))
