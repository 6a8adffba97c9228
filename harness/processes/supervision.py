"""A run in a process of its own, so that the implementation decides nothing about the exit status.

The process that was started never imports the implementation. It waits for a child process, which does, and for the
status that this one sends at its proper end: whatever ends the child otherwise, and with whatever exit status, is no
success.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, NoReturn

from autograd_conformance.harness.outcomes import UNDECIDED, UsageProblem, shortage
from autograd_conformance.harness.processes.child import exit_status
from autograd_conformance.harness.text import GONE, shown

# What ends a run from outside: Ctrl-C, and what schedulers send to a job that they cancel.
_ENDING = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))

# Seconds that a child may be stopped before it is ended.
_PATIENCE = 300.0
_STEP = 0.5

# Seconds for what a process does at its end.
_LEAVING = 1.0


def leave_with_main_thread() -> None:
    """Let this process end soon after its main thread, even if threads are left that an interpreter waits for."""

    def wait() -> None:
        threading.main_thread().join()
        time.sleep(_LEAVING)
        os._exit(0)

    threading.Thread(target=wait, daemon=True).start()


def supervised(action: Callable[[], int]) -> int:
    """The result of an action that runs in a child process. Raises UsageProblem if the child ends before it.

    Where processes cannot be forked, the action runs in this one.
    """
    if not hasattr(os, "fork"):
        return action()
    sys.stdout.flush()
    sys.stderr.flush()
    result, to_parent = os.pipe()
    # Open as long as the parent lives.
    from_parent, alive = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(result)
        os.close(alive)
        _be_child(action, to_parent, from_parent)
    os.close(to_parent)
    os.close(from_parent)
    with _forwarding(child):
        # Not for the end of the pipe: what the implementation forked has it open too.
        how = _ended(child)
    sent = _sent(result)
    os.close(result)
    os.close(alive)
    if not sent:
        raise UsageProblem(f"the run did not end properly: its process {how} before the verdict")
    return int(sent)


def _be_child(action: Callable[[], int], to_parent: int, from_parent: int) -> NoReturn:
    """Run the action, and send its result."""
    # Signals come from the parent alone: Ctrl-C in a terminal would come twice.
    os.setsid()
    for number in _ENDING:
        # Also where SIGINT is ignored, as in the background of a shell: it stands for whatever the parent hears.
        if number == signal.SIGINT:
            signal.signal(number, signal.default_int_handler)
        elif signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    try:
        _end_with(from_parent)
        status = action()
    except (KeyboardInterrupt, SystemExit):
        # Who leaves here is not the suite, which returns a status.
        status = UNDECIDED
    except BaseException as raised:  # noqa: BLE001 - what leaves here would run the parent's part
        reason = f"Error: {shown(_reason(raised))}" if _reason(raised) else traceback.format_exc()
        # Nobody may be left who reads it.
        with suppress(OSError):
            print(reason, file=sys.stderr)
        status = UNDECIDED
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:
        status = UNDECIDED
    os.write(to_parent, str(status).encode())
    # What the implementation registered for the end of the process does not run.
    os._exit(0)


def _reason(raised: BaseException) -> str:
    """Why the action cannot go on, in a sentence; empty if that is a fault of this suite."""
    return GONE if isinstance(raised, BrokenPipeError) else shortage(raised)


def _end_with(from_parent: int) -> None:
    """End this process when the parent is killed: nobody would hear the verdict."""

    def wait() -> None:
        os.read(from_parent, 1)
        os.kill(os.getpid(), signal.SIGKILL)

    threading.Thread(target=wait, daemon=True).start()


@contextmanager
def _forwarding(child: int) -> Iterator[None]:
    """A context in which what would end this process interrupts the child."""

    def interrupt(_number: int, _frame: Any) -> None:
        os.kill(child, signal.SIGINT)

    # What is ignored stays so, as under nohup. Only the main thread can set handlers.
    heard = [n for n in _ENDING if signal.getsignal(n) != signal.SIG_IGN]
    main = threading.current_thread() is threading.main_thread()
    before = {number: signal.signal(number, interrupt) for number in heard if main}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _sent(result: int) -> bytes:
    """What a child that has ended wrote."""
    os.set_blocking(result, False)
    with suppress(BlockingIOError):
        return os.read(result, 16)
    return b""


def _ended(child: int) -> str:
    """How the child ended, in words. One that is stopped and does not go on is ended."""
    left: float | None = None
    while True:
        found, status = os.waitpid(child, os.WUNTRACED | os.WCONTINUED | (0 if left is None else os.WNOHANG))
        if not found and left is not None:
            # In steps: the time in which this process is stopped too is one of them at most.
            time.sleep(_STEP)
            left -= _STEP
            if left <= 0:
                os.kill(child, signal.SIGKILL)
                left = None
        elif os.WIFSTOPPED(status):
            left = _PATIENCE
        elif os.WIFCONTINUED(status):
            left = None
        else:
            break
    return f"ended with {exit_status(os.waitstatus_to_exitcode(status))}"
