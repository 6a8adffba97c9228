"""The controller's watchdog: it ends workers that do not end themselves when the time limit of their test is up."""

from __future__ import annotations

import _thread
import contextlib
import signal
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from autograd_conformance.harness.outcomes import one_line
from autograd_conformance.harness.processes.blackbox import TIMEOUT, LastWords
from autograd_conformance.harness.text import shown

# Seconds between two looks.
_PERIOD = 1.0

# Seconds, and the share of the time limit, that a worker gets to end itself.
_GRACE, _SHARE = 10.0, 0.1

# Seconds in which a killed worker's connection should end.
_CLOSING = 5.0

# Seconds that the start of a worker may take, even if a test may not: it imports a framework.
START = 60.0


def why_not_started(raised: BaseException) -> str:
    """Why workers cannot start, from what execnet raised."""
    if isinstance(raised, TimeoutError) and raised.errno is None:
        return str(raised)
    # Of a closed channel execnet raises an OSError without a number.
    ended = isinstance(raised, BrokenPipeError | EOFError) or (isinstance(raised, OSError) and raised.errno is None)
    return "their program ended before it answered" if ended else shown(one_line(raised))


@dataclass
class Running:
    """A test that a worker runs, or its start: the first fields of its result line, the limit, the seconds so far."""

    node: Any
    key: dict[str, Any]
    limit: float
    seconds: float = 0.0

    @property
    def late(self) -> bool:
        """Whether it takes longer than the limit."""
        return self.seconds >= self.limit > 0

    @property
    def ignored(self) -> bool:
        """Whether it takes so long that the worker does not end itself."""
        return 0 < self.limit < self.seconds - max(_GRACE, _SHARE * self.limit)


class Watchdog(threading.Thread):
    """Ends workers that start, or whose test runs, for longer than their limit: stopped ones, or stuck in a driver.

    A worker that works ends itself, with the stacks of its threads. ``boxes`` has the black boxes of workers on this
    machine. A test has ``time_limit`` seconds, a start at least `START`; 0 is no limit. Time counts while this process
    runs: what suspends all processes ends none.
    """

    def __init__(self, boxes: Path, time_limit: float) -> None:
        super().__init__(name="watchdog", daemon=True)
        self._boxes, self._limit, self._stopped = boxes, time_limit, threading.Event()
        self._start_limit = max(time_limit, START) if time_limit > 0 else 0.0
        self._running: dict[str, Running] = {}

    def start_worker(self, node: Any) -> None:
        """A worker starts."""
        self._running[node.gateway.id] = Running(node, {}, self._start_limit)

    def begin(self, nodeid: str, node: Any, key: dict[str, Any]) -> None:
        """A worker begins a test, and so has started: xdist announces no collection that ends late in a run."""
        self.end(node.gateway.id)
        self._running[nodeid] = Running(node, key, self._limit)

    def end(self, what: str) -> Running | None:
        """The test of a node id, or the start of the worker of an id, has ended. Returns what is known about it."""
        return self._running.pop(what, None)

    @contextlib.contextmanager
    def starting(self) -> Iterator[None]:
        """A context in which workers are started. Raises TimeoutError if this takes longer than a worker's start."""
        late = threading.Event()

        def interrupt() -> None:
            late.set()
            if hasattr(signal, "pthread_kill"):
                signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
            else:
                _thread.interrupt_main()

        timer = threading.Timer(self._start_limit, interrupt)
        timer.daemon = True
        if self._start_limit > 0:
            timer.start()
        try:
            yield
        except BaseException:
            # The interrupt may come out of the library as another exception.
            if not late.is_set():
                raise
            # They have the output of the run open.
            for process in psutil.Process().children(recursive=True):
                with contextlib.suppress(psutil.Error):
                    process.kill()
            raise TimeoutError(f"they did not answer within {self._start_limit:g} s") from None
        finally:
            timer.cancel()

    def last_words(self, nodeid: str, found: Running) -> LastWords:
        """What is known about the test of a worker that left no black box."""
        return LastWords(nodeid, found.key, "", (TIMEOUT,) if found.late else (), limit=found.limit)

    def run(self) -> None:
        while not self._stopped.wait(_PERIOD):
            for nodeid, each in list(self._running.items()):
                each.seconds += _PERIOD
                if each.ignored:
                    self._kill(each)
                    if nodeid in self._running:
                        each.seconds = each.limit

    def stop(self) -> None:
        """Stop watching."""
        self._stopped.set()

    def _kill(self, found: Running) -> None:
        """End a worker, and let xdist know even if its connection stays open, as in a process that it forked."""
        node = found.node
        box = self._boxes / node.gateway.id
        with contextlib.suppress(OSError, ValueError, psutil.Error):
            number = int(box.with_suffix(".pid").read_text())
            with box.open("a") as file:
                file.write(f"{TIMEOUT}\n")
            psutil.Process(number).kill()
        # Of one that has left no number, the connection.
        with contextlib.suppress(Exception):
            node.gateway._io.kill()
        if not self._stopped.wait(_CLOSING) and not node._down:
            node._down = True
            node.notify_inproc("errordown", node=node, error="it did not answer")
