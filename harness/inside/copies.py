"""A check in a thread of the program itself, of copies of a call: for where no process can be forked.

It may change what the Function reaches beside its arguments, and so is made only if that is asked for.
"""

from __future__ import annotations

import contextlib
import contextvars
import gc
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from time import monotonic
from typing import Any

from . import in_hypothesis, snapshot
from .arguments import PACKAGE, is_tensor
from .snapshot import GRACE, LATE, Message


class _Over(BaseException):
    """Nothing more is to be sent."""


# The threads of checks that did not end in time: there is no way to end them.
_ENDLESS: list[threading.Thread] = []


def impossible(args: Sequence[Any], allowed: bool) -> str:
    """Why a call with these arguments cannot be checked at all; empty if it can."""
    why = snapshot.unforkable(args)
    if not why:
        return ""
    if not allowed:
        return f"{why}; --in-process checks copies of it in the program"
    distributed = sys.modules.get(f"{PACKAGE}.distributed")
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        return f"{why}, and a check in the process itself could meet its collectives"
    if len({x.device for x in args if is_tensor(x)}) > 1:
        return f"{why}, and its tensors are on several devices"
    if sys.modules[PACKAGE].get_default_device().type != "cpu":
        return f"{why}, and a default device is set, which another thread does not have"
    if any(map(threading.Thread.is_alive, _ENDLESS)):
        return f"{why}, and an earlier check in this process did not end in time"
    return ""


def would_meet() -> bool:
    """Whether a check now would meet what this thread is doing."""
    torch = sys.modules[PACKAGE]
    # Within backward the engine's thread of the device waits for this call, and the check would wait for that thread. A
    # graph of CUDA that is being recorded would record the check.
    capturing = torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing()
    return torch._C._current_graph_task_id() != -1 or bool(capturing)


def messages(
    kept: Callable[[], contextlib.AbstractContextManager[object]], work: Callable[..., object], seconds: float
) -> Iterator[Message]:
    """What ``work(send=)`` sends from a thread; the last message says if it did not end in time.

    ``kept`` keeps what the process has from changes by the work.
    """
    torch = sys.modules[PACKAGE]
    found: list[Message] = []
    given_up = threading.Event()

    def send(message: Message) -> None:
        if given_up.is_set():
            raise _Over
        found.append(snapshot.sent(message))
        if "left_out" in found[-1]:
            raise _Over

    def run() -> None:
        with contextlib.suppress(_Over):
            # It is no part of the Function, and is set back by ``kept``.
            torch.autograd.set_detect_anomaly(False)
            try:
                work(send=send)
            except Exception as raised:  # noqa: BLE001 - it is said in the report
                send({"left_out": snapshot.own_fault(raised)})

    # What is active in the thread of the call is not in another one.
    thread = threading.Thread(target=contextvars.copy_context().run, args=(run,), daemon=True)
    with in_hypothesis.outside_of_tests(), _unseen(thread), kept():
        until = monotonic() + seconds + GRACE
        try:
            thread.start()
            thread.join(until - monotonic())
        finally:
            if thread.is_alive():
                given_up.set()
                _ENDLESS.append(thread)
                found.append({"lost": LATE})
    yield from found


@contextlib.contextmanager
def _unseen(thread: threading.Thread) -> Iterator[None]:
    """Let the calls of a check be watched by none, print nothing, and collect what the check has made alone."""
    streams, is_frozen = (sys.stdout, sys.stderr), gc.get_freeze_count() > 0
    snapshot.IN_SNAPSHOT.append(True)
    sys.stdout, sys.stderr = (stream and _Without(thread, stream) for stream in streams)
    if not is_frozen:
        gc.freeze()
    try:
        yield
    finally:
        if not is_frozen:
            gc.unfreeze()
        for name, stream in zip(("stdout", "stderr"), streams, strict=True):
            # A test of the program may have replaced it in another thread.
            if isinstance(getattr(sys, name), _Without):
                setattr(sys, name, stream)
        snapshot.IN_SNAPSHOT.clear()


class _Without:
    """A stream that one thread writes nothing to."""

    def __init__(self, thread: threading.Thread, stream: Any) -> None:
        self._thread, self._stream = thread, stream

    def write(self, text: str) -> int:
        if threading.get_ident() == self._thread.ident:
            return len(text)
        return int(self._stream.write(text))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
