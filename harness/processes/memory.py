"""The memory limit: workers that exceed it are killed before the machine runs out of memory."""

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

# Seconds between two measurements.
_PERIOD = 0.1

# The first word that the guard writes into the black box of a process that it kills.
OUT_OF_MEMORY = "Memory"


# The files with a container's own limit: control groups of version 2 and 1.
_LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))


def default_limit(workers: int, limits: Iterable[Path] = _LIMITS) -> float:
    """The limit of each worker in GiB: its share of the memory of the machine or container, whichever is less."""
    found = [psutil.virtual_memory().total]
    for path in limits:
        # Without a limit the file says "max" or is not there.
        with contextlib.suppress(OSError, ValueError):
            found.append(int(path.read_text()))
    return round(float(SHARE * min(found)) / GIB / max(1, workers), 1)


class Guard(threading.Thread):
    """Kills the processes that use more than ``limit`` GiB, and writes the reason into their black boxes in ``boxes``.

    It runs in another process, because native code that allocates may block all Python threads of its own process.
    """

    def __init__(self, boxes: Path, limit: float) -> None:
        super().__init__(name="memory-guard", daemon=True)
        self._boxes, self._limit, self._ended = boxes, limit, threading.Event()

    def run(self) -> None:
        while not self._ended.wait(_PERIOD):
            for path in self._pids():
                # The file may be new and still empty, or be removed at any time.
                with contextlib.suppress(psutil.Error, OSError, ValueError):
                    self._measure(path)

    def _pids(self) -> list[Path]:
        # Without a free file descriptor the folder cannot be listed.
        with contextlib.suppress(OSError):
            return [*self._boxes.glob("*.pid")]
        return []

    def stop(self) -> None:
        """Stop measuring."""
        self._ended.set()
        self.join()

    def _measure(self, path: Path) -> None:
        number = int(path.read_text())
        if not psutil.pid_exists(number):
            # Another process may get this id later.
            path.unlink()
            return
        process = psutil.Process(number)
        used = process.memory_info().rss / GIB
        if used > self._limit:
            # Suspended first, so that it does not overwrite the reason.
            process.suspend()
            try:
                with path.with_suffix("").open("a") as box:
                    box.write(f"{OUT_OF_MEMORY} limit of {self._limit:g} GiB exceeded ({used:.1f} GiB in use)\n")
                path.unlink()
            finally:
                process.kill()


def leave_pid(box: Path) -> None:
    """Write the id of this process next to its black box."""
    box.with_suffix(".pid").write_text(str(os.getpid()))
