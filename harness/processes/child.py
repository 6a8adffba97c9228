"""Processes that may hang or die: how they are started, what they say, and how they ended.

A command runs in an interpreter of its own. A function runs in a process that has the modules of this one, where the
framework survives a fork.
"""

from __future__ import annotations

import ctypes
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn

from autograd_conformance import implementations

# These survive a fork, so that what is imported once serves several processes. Others start threads when they are
# imported.
FORKABLE = ("torch", "hips", "mygrad", "model")

# Whether a process with threads can be forked and used: on Windows there are no forks, and on macOS the system's
# libraries do not survive them.
CAN_FORK = hasattr(os, "fork") and sys.platform != "darwin"

# The first word of each line with a message; a framework may print other lines.
MARK = "autograd-conformance-says"

# The option of Linux that sends a process a signal when the one that started it ends.
_PR_SET_PDEATHSIG = 1

Message = dict[str, Any]


@dataclass(frozen=True)
class Ended:
    """How a process ended: ``how`` in words, whether it was ended because it took too long, or its exit status."""

    how: str
    late: bool = False
    # Which ``how`` says as well.
    code: int | None = field(default=None, compare=False)


def exit_status(code: int | None) -> str:
    """An exit status in words."""
    if code is None or code >= 0:
        return f"exit status {code}"
    names = {each.value: each.name for each in signal.Signals}
    return names.get(-code, f"signal {-code}")


def _late(seconds: float) -> Ended:
    return Ended(f"did not end within {seconds:g} s", late=True)


def _died(code: int | None) -> Ended:
    return Ended(f"ended the process ({exit_status(code)})", code=code)


# Commands.


def say(message: Mapping[str, Any]) -> None:
    """Send a message from a process that `command` started."""
    # A line that a framework began ends here.
    print(f"\n{MARK}", json.dumps(message), flush=True)


def leaving(action: Callable[[], object]) -> NoReturn:
    """Do something, and end this process as an interpreter does, but without waiting for threads that are left."""
    code: Any = 1
    try:
        action()
        code = 0
    except SystemExit as left:
        code = left.code if isinstance(left.code, int) else int(left.code is not None)
    except BaseException:  # noqa: BLE001 - as an interpreter does
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def command(
    words: Sequence[str], *, seconds: float, environment: Mapping[str, str] | None = None
) -> tuple[list[Message], Ended]:
    """Run this interpreter with these words; the messages, and how it ended, with the last line of its errors."""
    try:
        # Bytes: a driver may print anything.
        done = subprocess.run(
            [sys.executable, *words], env=environment, capture_output=True, timeout=seconds, check=False
        )
    except subprocess.TimeoutExpired as late:
        return _messages(late.stdout or b""), _late(seconds)
    except OSError as problem:
        return [], Ended(f"cannot be started: {problem.strerror}")
    *_, last = [b"it printed nothing", *done.stderr.strip().splitlines()]
    died = _died(done.returncode)
    return _messages(done.stdout), replace(died, how=f"{died.how}: {last.decode(errors='replace')}")


def _messages(printed: bytes) -> list[Message]:
    lines = [line for line in printed.decode(errors="replace").splitlines() if line.startswith(f"{MARK} ")]
    found = []
    for line in lines:
        # What was being written when the process ended is no message, nor what the code under test writes.
        with suppress(ValueError):
            found.append(json.loads(line.removeprefix(MARK)))
    return [message for message in found if isinstance(message, dict)]


# Functions.


def forks(implementation: str) -> bool:
    """Whether processes with this implementation can be forks of this one."""
    # A forked process cannot use the driver of an accelerator.
    return CAN_FORK and implementation in FORKABLE and not implementations.load(implementation).accelerators()


@contextmanager
def started(work: Callable[..., None], *arguments: Any, fork: bool) -> Iterator[Any]:
    """A context with a process in which a function runs, for at most as long as the context and this process."""
    start: Any = multiprocessing.get_context("fork" if fork else "spawn")
    process = start.Process(target=_heeding, args=(work, *arguments))
    try:
        with warnings.catch_warnings():
            # Of a thread that waits for the end of the parent. The process has this filter as well.
            warnings.filterwarnings("ignore", ".*multi-threaded, use of fork", DeprecationWarning)
            process.start()
        yield process
    finally:
        if process.pid is not None:
            process.kill()
            process.join()


def messages(work: Callable[..., None], *arguments: Any, fork: bool, seconds: float) -> Iterator[Message | Ended]:
    """What a function sends, each time within so many seconds. The last one says how it ended, if it did not return.

    ``work`` gets the function that sends a message, and the arguments. What it prints is dropped.
    """
    start = multiprocessing.get_context("fork" if fork else "spawn")
    mine, theirs = start.Pipe(duplex=False)
    with mine, started(_sending, work, theirs, *arguments, fork=fork) as process:
        theirs.close()
        while mine.poll(seconds):
            try:
                message = mine.recv()
            except (EOFError, OSError):
                # It may have ended in the middle of a message.
                process.join()
                yield _died(process.exitcode)
                return
            if message is None:
                return
            yield message
        yield _late(seconds)


def _sending(work: Callable[..., None], pipe: Any, *arguments: Any) -> None:
    # Output of a user's module would mix with the verdicts.
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.dup2(null, 2)
    work(pipe.send, *arguments)
    pipe.send(None)


def _heeding(work: Callable[..., None], *arguments: Any) -> None:
    """Let only the process that started this one end it, on Linux also by being killed.

    An interrupt at a terminal reaches both.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    end_with_parent()
    work(*arguments)


def end_with_parent() -> None:
    """Let this process be killed when the one that started it ends, on Linux."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
