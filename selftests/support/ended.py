"""Whether processes have ended."""

from __future__ import annotations

import time
from pathlib import Path


def running(pids):
    """The states of those of the processes that run."""
    states = [Path(f"/proc/{pid}/stat").read_text().split()[2] for pid in pids if Path(f"/proc/{pid}").exists()]
    return [state for state in states if state != "Z"]


def assert_that_they_end(pids):
    """All of the processes end within 20 s."""
    until = time.monotonic() + 20
    while running(pids) and time.monotonic() < until:
        time.sleep(0.1)
    assert running(pids) == []
