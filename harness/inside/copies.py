"""A check in a thread of the program itself, of copies of a call: for where no process can be forked."""

from __future__ import annotations

import contextlib
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


def impossible(args: Sequence[Any]) -> str:
    """Why no copies of a call with these arguments can be checked; empty if they can."""
    distributed = sys.modules.get(f"{PACKAGE}.distributed")
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        return f"{snapshot.unforkable(args)}, and a check in the process itself could meet its collectives"
    if len({x.device for x in args if is_tensor(x)}) > 1:
        return f"{snapshot.unforkable(args)}, and its tensors are on several devices"
    if any(map(threading.Thread.is_alive, _ENDLESS)):
        return "a check of another Function in this process did not end in time"
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
            try:
                work(send=send)
            except Exception as raised:  # noqa: BLE001 - it is said in the report
                send({"left_out": snapshot.own_fault(raised)})

    # What is active in the thread of the call is not in another one.
    thread = threading.Thread(target=run, daemon=True)
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
    sys.stdout, sys.stderr = (_Without(thread, stream) for stream in streams)
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
        if threading.current_thread() is self._thread:
            return len(text)
        return int(self._stream.write(text))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
