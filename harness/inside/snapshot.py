"""A process that is forked from the program, with all that it has, to try a call without any trace in the program."""

from __future__ import annotations

import ctypes
import functools
import gc
import importlib
import json
import logging
import mmap
import os
import select
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from time import monotonic
from typing import Any

from .arguments import PACKAGE, is_tensor

Message = dict[str, Any]

# The option of Linux that sends a process a signal when the one that started it ends.
_PR_SET_PDEATHSIG = 1
# Of mmap: at this very place.
_MAP_FIXED = 0x10
# What a process may take beyond its time, in seconds: to end a test that has begun.
GRACE = 5.0
# What is said of one that takes longer.
LATE = "did not end in time; --limit gives more"

# The bytes that such a process may take beside those of the program, and what is said where it needs more.
_MEMORY = 4 << 30
_TOO_LITTLE = {
    "can't allocate memory": f"a check needs more than {_MEMORY >> 30} GiB beside the program",
    "MemoryError": f"a check needs more than {_MEMORY >> 30} GiB beside the program",
    "out of memory": "a check needs more memory than there is beside the program",
}

# The most elements of all tensors of a call.
MOST_ELEMENTS = 2**20

# The collectives of torch.distributed, and what the names of others begin with.
_COLLECTIVES = ("barrier", "monitored_barrier", "send", "recv", "isend", "irecv", "batch_isend_irecv")
_KINDS = ("all_", "reduce", "gather", "scatter", "broadcast")
# What this process did that it must not.
_FORBIDDEN: list[str] = []

# Whether this process is such a snapshot, or checks copies of a call itself.
IN_SNAPSHOT: list[bool] = []


def too_large(args: Sequence[Any]) -> str:
    """Why a check of calls with these arguments would take too long; empty if it does not."""
    if sum(x._nnz() if x.is_sparse else x.numel() for x in args if is_tensor(x)) > MOST_ELEMENTS:
        return f"its tensors have more than {MOST_ELEMENTS} elements"
    return ""


def unforkable(args: Sequence[Any]) -> str:
    """Why no process can be forked for a call with these arguments; empty if one can."""
    torch = sys.modules[PACKAGE]
    # On macOS the system's libraries do not survive a fork.
    if not hasattr(os, "fork") or sys.platform == "darwin":
        return "on this platform a process with threads cannot be forked"
    elsewhere = {x.device.type for x in args if is_tensor(x)} - {"cpu"}
    if elsewhere:
        return f"a forked process cannot use tensors on {' and '.join(sorted(elsewhere))}"
    if torch.cuda.is_initialized():
        return "a process that uses CUDA cannot be forked"
    return ""


def messages(work: Callable[..., object], seconds: float) -> Iterator[Message]:
    """What ``work(send=)`` sends from a forked process; the last message says how it was lost, if it was."""
    read, write = os.pipe()
    child = _forked()
    if child == 0:
        _leave(work, write)
    os.close(write)
    try:
        yield from _received(read, monotonic() + seconds + GRACE)
    finally:
        os.close(read)
        with suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        # The program may wait for all its children.
        with suppress(ChildProcessError):
            os.waitpid(child, 0)


def _forked() -> int:
    # Newer releases of Python warn of threads that the child does not have. To ignore that makes them forget which
    # warnings of the program were printed.
    if sys.version_info < (3, 12):
        return os.fork()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return os.fork()


def _received(read: int, until: float) -> Iterator[Message]:
    """The lines of a pipe until it is closed; a message if it is closed within one, or is not closed in time."""
    text, ended, ready = b"", False, select.poll()
    ready.register(read, select.POLLIN)
    while not ended:
        left = until - monotonic()
        if left <= 0 or not ready.poll(1000 * left):
            yield {"lost": LATE}
            return
        found = os.read(read, 2**16)
        ended = not found
        *lines, text = (text + found).split(b"\n")
        for line in lines:
            message = json.loads(line)
            if message == _END:
                return
            yield message
    yield {"lost": "ended in the middle of a check"}


# The last message of a process that was not lost.
_END: Message = {"end": True}


def _leave(work: Callable[..., object], write: int) -> None:
    """Do the work in this process, which was forked, and end it without a trace."""
    try:
        IN_SNAPSHOT.append(True)
        _silence()

        def send(message: Message) -> None:
            message = sent(message)
            os.write(write, _line(message))
            if "left_out" in message:
                os.write(write, _line(_END))
                os._exit(0)

        def run() -> None:
            try:
                work(send=send)
            except Exception as raised:  # noqa: BLE001 - it is said in the report
                send({"left_out": own_fault(raised)})
            os.write(write, _line(_END))

        # What is active in the thread of the call (hooks, autocast, modes, a test of Hypothesis) is not in another one.
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
    finally:
        # Nothing that the program has registered for its end may run here.
        os._exit(0)


def sent(message: Message) -> Message:
    """The message, or why the call is left out if that is what it shows: what it raised for that is no fault."""
    if _FORBIDDEN:
        return {"left_out": _FORBIDDEN[0]}
    text = json.dumps(message)
    why = next((why for words, why in _TOO_LITTLE.items() if words in text), "")
    return {"left_out": why} if why else message


def _line(message: Message) -> bytes:
    return (json.dumps(message) + "\n").encode()


def _own_memory() -> None:
    """Replace the memory that this process shares with others by memory of its own, with the same bytes."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    with suppress(OSError), open("/proc/self/maps", encoding="utf-8") as regions:
        for region in list(regions):
            place, rights, *_ = region.split()
            if rights.startswith("rw") and rights.endswith("s"):
                start, end = (int(number, 16) for number in place.split("-"))
                held = ctypes.string_at(start, end - start)
                flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _MAP_FIXED
                if libc.mmap(start, end - start, mmap.PROT_READ | mmap.PROT_WRITE, flags, -1, 0) == start:
                    ctypes.memmove(start, held, len(held))


def _limit_memory() -> None:
    """Let this process take no more than so much memory beside what the program has."""
    resource = importlib.import_module("resource")
    with suppress(OSError, ValueError), open("/proc/self/statm", encoding="ascii") as sizes:
        taken = int(sizes.read().split()[0]) * resource.getpagesize()
        _, most = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (taken + _MEMORY, most))


def _forbid_collectives() -> None:
    """Let every collective raise: the other processes wait for those of the program."""
    collectives = sys.modules.get(f"{PACKAGE}.distributed.distributed_c10d")
    if collectives is None or not collectives.is_initialized():
        return
    package = sys.modules[f"{PACKAGE}.distributed"]
    for name in collectives.__all__:
        if name in _COLLECTIVES or name.startswith(_KINDS):
            for module in (collectives, package):
                setattr(module, name, functools.partial(_refuse, name))


def _refuse(name: str, *_: Any, **__: Any) -> None:
    _FORBIDDEN.append(f"it calls torch.distributed.{name}; check it with a declaration of in_processes")
    raise RuntimeError(_FORBIDDEN[0])


def own_fault(raised: Exception) -> str:
    """What is said of an exception of this package."""
    return f"autograd-conformance itself failed: {type(raised).__name__}: {raised}; please report it"


def _silence() -> None:
    """Throw away what this process prints, and let it end with the program and with no interrupt."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM):
        with suppress(ValueError):
            signal.signal(number, signal.SIG_IGN)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nowhere, stream)
    sys.stdout = sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    logging.disable(logging.CRITICAL)
    # What is collected here is what is made here.
    gc.freeze()
    torch = sys.modules[PACKAGE]
    # Those of the program's threads that compute are not here.
    torch.set_num_threads(1)
    torch.autograd.set_detect_anomaly(False)
    if f"{PACKAGE}._dynamo.compiled_autograd" in sys.modules:
        # What the program compiles is not what is checked.
        torch._C._dynamo.compiled_autograd.set_autograd_compiler(None, False)
    _own_memory()
    _limit_memory()
    _forbid_collectives()
