"""The processes of a function: how they are started, asked and ended."""

from __future__ import annotations

import ctypes
import itertools
import os
import pickle
import shutil
import signal
import sys
import tempfile
import threading
import time
import warnings
import weakref
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, NoReturn

import torch
from torch import Tensor, distributed

from autograd_conformance.implementations.misbehaving import Misbehaves
from autograd_conformance.implementations.torch.processes.serving import UNABLE, Failed, received, serve

# Seconds that the others have for an answer of their own, once a process has raised.
_GRACE = 0.5
# Seconds that a process may wait for the others, once it has waited for too long.
_IMPATIENT = 1.0
# How many requests of a kind may fail before the first that works. A check makes a thousand calls, and these are slow.
_ATTEMPTS = 20

_STARTING = threading.Lock()


class Refused(RuntimeError):
    """What all processes raised."""


class Stuck(Misbehaves):
    """A process did not answer, or died."""

    cure = "each process must end each call; look for a collective that some of the processes do not reach"


def _fail(kind: type[RuntimeError], words: str) -> NoReturn:
    # In one place, so that whoever compares failures takes two with the same words for the same.
    raise kind(words)


def each_part(value: Any, size: int, *, whole: bool) -> list[Any]:
    """The part of each process, or the whole for each."""
    if not isinstance(value, Tensor):
        return [value] * size
    return [value.detach()] * size if whole else list(value.detach())


@dataclass(eq=False)
class Group:
    """The processes of a function: forked at the first call, by each process that calls it."""

    function: Callable[..., Any]
    size: int
    replicated: frozenset[int]
    replicated_outputs: bool
    seconds: float
    # The number of each process, and the end of the pipe to it.
    pids: list[int] = field(default_factory=list)
    pipes: list[Connection] = field(default_factory=list)
    numbers: Any = field(default_factory=itertools.count)
    # The calls that no graph holds any more.
    done: list[int] = field(default_factory=list)
    lock: Any = field(default_factory=threading.RLock)
    # The kinds of requests that have worked, and of each kind what those raised that have failed.
    worked: set[str] = field(default_factory=set)
    failures: dict[str, list[tuple[type[RuntimeError], str]]] = field(default_factory=lambda: defaultdict(list))

    def __post_init__(self) -> None:
        _GROUPS.add(self)
        weakref.finalize(self, _end, os.getpid(), self.pids, self.pipes)

    def parts(self, position: int, value: Any) -> list[Any]:
        """What each process gets of an argument. Raises ValueError if a tensor has no part for each."""
        whole = position in self.replicated
        if isinstance(value, Tensor) and not whole and (value.dim() == 0 or len(value) != self.size):
            raise ValueError(
                f"argument {position} must have {self.size} as its first dimension, a part for each process, "
                f"got the shape {tuple(value.shape)}"
            )
        if whole and not isinstance(value, Tensor):
            raise ValueError(
                f"argument {position} must be a tensor, since it is replicated, got {type(value).__name__}"
            )
        return each_part(value, self.size, whole=whole)

    def answers(self, kind: str, number: int, parts: Sequence[Sequence[Any]], needs: Sequence[bool]) -> list[Any]:
        """What the processes answer, in their order. Raises RuntimeError if one raises or does not answer.

        What they change in place is changed in these parts as well, and the state of random numbers is that of the
        first process.
        """
        with self.lock:
            if kind not in self.worked and len(self.failures[kind]) >= _ATTEMPTS:
                _fail(*self.failures[kind][-1])
            try:
                found = self._asked(kind, number, parts, needs)
                self.worked.add(kind)
                return found
            except Refused:
                raise
            except BaseException as raised:
                if isinstance(raised, RuntimeError):
                    self.failures[kind].append((type(raised), str(raised)))
                # Answers to this request may still come. They must not be taken for those to the next one.
                self.stop()
                raise

    def _asked(self, kind: str, number: int, parts: Sequence[Sequence[Any]], needs: Sequence[bool]) -> list[Any]:
        if not self.pids:
            self._start()
        done = [self.done.pop() for _ in range(len(self.done))]
        ambient, each = _ambient(), list(zip(*parts, strict=True)) or [()] * self.size
        for pipe, values in zip(self.pipes, each, strict=True):
            # Who has died says so by having no answer.
            with suppress(BrokenPipeError, ConnectionError):
                pipe.send_bytes(pickle.dumps((done, ambient, kind, number, values, needs)))
        found = self._answered()
        for values, (_, changed, _) in zip(each, found, strict=True):
            for position, value in changed.items():
                values[position].copy_(value)
        if not found[0][2].equal(ambient[0]):
            torch.set_rng_state(found[0][2])
        return [answer for answer, *_ in found]

    def _answered(self) -> list[Any]:
        found: dict[int, Any] = {}
        until = time.monotonic() + self.seconds + _GRACE
        while len(found) < self.size:
            waiting: dict[Any, int] = {pipe: rank for rank, pipe in enumerate(self.pipes) if rank not in found}
            ready = wait(list(waiting), max(0, until - time.monotonic()))
            if not ready:
                break
            for pipe in ready:
                found[waiting[pipe]] = answer = received(pipe)
                if isinstance(answer, Failed):
                    until = min(until, time.monotonic() + _GRACE)
        failed = {rank: answer for rank, answer in found.items() if isinstance(answer, Failed)}
        if len(found) < self.size and not failed:
            late = Failed(f"gave no answer within {self.seconds:g} s", late=True)
            failed = {rank: late for rank in range(self.size) if rank not in found}
        if not failed:
            return [found[rank] for rank in range(self.size)]
        words = "; ".join(f"process {rank} {each.how}" for rank, each in sorted(failed.items()))
        slow = any(each.late for each in failed.values())
        dead = any(each.dead for each in failed.values())
        # All that raise the same have come equally far, and go on together.
        if len(failed) == self.size and len({each.how for each in failed.values()}) == 1 and not slow and not dead:
            _fail(Refused, words)
        # Who has waited once for too long waits at every call, of which a check makes many.
        if slow:
            self.seconds = min(self.seconds, _IMPATIENT)
        # Where one raised, the others may wait for it.
        lost = all(each.late or each.dead for each in failed.values())
        _fail(Stuck if lost else RuntimeError, words)

    def _start(self) -> None:
        if distributed.is_initialized():
            raise RuntimeError(
                "in_processes must be the first to make a group of torch.distributed, got one that is there already: "
                "call torch.distributed.destroy_process_group()"
            )
        try:
            self._fork(os.fork)
        except RuntimeError as refused:
            if UNABLE not in str(refused) or _fork_without_handlers is None:
                raise
            self.stop()
            self._fork(_fork_without_handlers)

    def _fork(self, fork: Callable[[], int]) -> None:
        folder = tempfile.mkdtemp()
        try:
            with _STARTING, warnings.catch_warnings():
                # Of threads that only wait. The function under test runs in a process that has none.
                warnings.filterwarnings("ignore", ".*multi-threaded, use of fork", DeprecationWarning)
                for rank in range(self.size):
                    mine, theirs = Pipe()
                    self.pipes.append(mine)
                    child = fork()
                    if child == 0:
                        serve(theirs, self, rank, Path(folder, "store"))
                    self.pids.append(child)
                    theirs.close()
            self._answered()
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def stop(self) -> None:
        """End the processes; the next call starts others."""
        _end(os.getpid(), self.pids, self.pipes)

    def forget(self) -> None:
        """Leave the processes to the one that has started them: this one is its fork."""
        for pipe in self.pipes:
            pipe.close()
        self.pids.clear()
        self.pipes.clear()
        self.lock = threading.RLock()


def _unhandled(libc: Any) -> Callable[[], int]:
    """A fork that the handlers of libraries do not see, and those of Python do.

    One of torch's lets no fork run a backward pass once the engine has started a thread. The threads are for
    accelerators, and for passes within many others; a pass on the CPU runs in the thread that calls it.
    """

    def fork() -> int:
        python = ctypes.pythonapi
        python.PyOS_BeforeFork()
        child = int(libc._Fork())
        after = python.PyOS_AfterFork_Parent if child else python.PyOS_AfterFork_Child
        after()
        return child

    return fork


# The C library of Linux has it since 2.34.
_libc = ctypes.PyDLL(None) if sys.platform == "linux" else None
_fork_without_handlers = _unhandled(_libc) if hasattr(_libc, "_Fork") else None

_GROUPS: weakref.WeakSet[Group] = weakref.WeakSet()


def _end(pid: int, pids: list[int], pipes: list[Connection]) -> None:
    """End processes that this one has started, if it is the one with this number."""
    for pipe in pipes:
        pipe.close()
    pipes.clear()
    while pids and pid == os.getpid():
        with suppress(ProcessLookupError, ChildProcessError):
            os.kill(pids[-1], signal.SIGKILL)
            os.waitpid(pids[-1], 0)
        pids.pop()


def _after_fork() -> None:
    global _STARTING
    _STARTING = threading.Lock()
    for group in _GROUPS:
        group.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def _ambient() -> tuple[Tensor, torch.dtype | None]:
    """The state of random numbers, and the dtype of autocast where it is enabled."""
    enabled = torch.is_autocast_enabled("cpu")
    return torch.get_rng_state(), torch.get_autocast_dtype("cpu") if enabled else None
