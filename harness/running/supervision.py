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
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

from autograd_conformance.harness.outcomes import UsageProblem

_USAGE = 2

# What ends a run from outside: Ctrl-C, and what schedulers send to a job that they cancel.
_ENDING = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))


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
        _end_with(from_parent)
        _be_child(action, to_parent)
    os.close(to_parent)
    os.close(from_parent)
    with _forwarding(child):
        sent = b"".join(iter(lambda: os.read(result, 16), b""))
        how = _ended(child)
    os.close(result)
    os.close(alive)
    if not sent:
        raise UsageProblem(f"the run did not end properly: its process {how} before the verdict")
    return int(sent)


def _be_child(action: Callable[[], int], to_parent: int) -> NoReturn:
    """Run the action, and send its result."""
    # Signals come from the parent alone: Ctrl-C in a terminal would come twice.
    os.setsid()
    for number in _ENDING:
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
    try:
        status = action()
    except (KeyboardInterrupt, SystemExit):
        # Who leaves here is not the suite, which returns a status.
        status = _USAGE
    sys.stdout.flush()
    sys.stderr.flush()
    os.write(to_parent, str(status).encode())
    # What the implementation registered for the end of the process does not run.
    os._exit(0)


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


def _ended(child: int) -> str:
    """How the child ended, in words."""
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return f"ended with exit status {status}" if status >= 0 else f"was ended by {signal.Signals(-status).name}"
