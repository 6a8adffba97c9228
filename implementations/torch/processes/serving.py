"""What runs in each process of a group: it joins, answers requests, and keeps the calls for backward."""

from __future__ import annotations

import os
import pickle
import signal
import stat
import sys
import threading
import time
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NoReturn

import torch
from torch import Tensor, distributed

# What a process says whose engine runs no backward pass, as it is the fork of one with threads.
UNABLE = "in_processes must be called first in a process whose engine has no threads, got one that has"


@dataclass(frozen=True)
class Failed:
    """Why a process has no answer, in words that follow its number; whether it waited too long, and whether it died."""

    how: str
    late: bool = False
    dead: bool = False


def received(pipe: Any) -> Any:
    """The answer of a process that has one, or has died."""
    try:
        return pickle.loads(pipe.recv_bytes())
    except (EOFError, OSError):
        return Failed("died", dead=True)


def differing(x: Tensor, y: Tensor) -> Tensor:
    """Where two tensors have different elements. NaN is the same as NaN."""
    return (x != y) & ~((x != x) & (y != y))


def serve(pipe: Connection, group: Any, rank: int, store: Path) -> NoReturn:
    """Answer requests to a process of the group, until nobody asks any more."""
    try:
        # An interrupt at a terminal is for the one that asks, and handlers of it say nothing about this process.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        _let_go_of_pipes(pipe.fileno())
        threading.Thread(target=_heed, args=(os.getppid(),), daemon=True).start()
        pipe.send_bytes(pickle.dumps(_caught(lambda: _join(group, rank, store))))
        served = _Served(group.function)
        while True:
            pipe.send_bytes(pickle.dumps(_caught(served.answer, *pickle.loads(pipe.recv_bytes()))))
    except (EOFError, OSError):
        os._exit(0)
    finally:
        os._exit(1)


def _let_go_of_pipes(own: int) -> None:
    """Leave the pipes and sockets of the process that was forked to it: who reads from them waits for their end."""
    null = os.open(os.devnull, os.O_RDWR)
    for number in map(int, os.listdir("/dev/fd")):
        with suppress(OSError):
            mode = os.fstat(number).st_mode
            if number not in (0, 1, 2, own) and (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)):
                # What still has the number may close it, when gloo would have it.
                os.dup2(null, number)


def _heed(parent: int) -> None:
    """End this process soon after the one that has started it, whatever it computes."""
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(0)


def _caught(action: Callable[..., Any], *args: Any) -> Any:
    """What an action returns, or why it does not."""
    try:
        return action(*args)
    except (Exception, SystemExit) as raised:  # noqa: BLE001 - the one that asks raises it
        words = "an error without words"
        with suppress(Exception):
            words = str(raised)
        return Failed(f"raised {type(raised).__name__}: {words}", late="gloo" in words and "Timed out" in words)


def _join(group: Any, rank: int, store: Path) -> None:
    """Make this process one of the group."""
    with suppress(AttributeError):
        # What is imported as torch need not have it.
        torch.set_num_threads(1)
    # What is an error around the call is none in here, and nobody needs to read a warning once for each process.
    warnings.simplefilter("ignore")
    if sys.platform == "linux":
        # The name of a machine need not have an address.
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    distributed.init_process_group(
        "gloo",
        init_method=f"file://{store}",
        rank=rank,
        world_size=group.size,
        timeout=timedelta(seconds=group.seconds),
    )
    try:
        torch.ones((), requires_grad=True).backward()
    except RuntimeError as refused:
        raise RuntimeError(f"{UNABLE}: a backward pass has run on an accelerator, or within many others") from refused


class _Served:
    """The calls in one process: the leaves and the outputs of each, by its number."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.calls: dict[int, tuple[list[Any], tuple[Tensor, ...]]] = {}

    def answer(
        self, done: Sequence[int], ambient: Any, kind: str, number: int, values: Sequence[Any], needs: Sequence[bool]
    ) -> tuple[Any, dict[int, Tensor], Tensor]:
        """The answer to a request, which values it has changed in place, and the state of random numbers after it.

        The calls that are done are dropped.
        """
        for each in done:
            self.calls.pop(each, None)
        before = {n: x.clone() for n, x in enumerate(values) if isinstance(x, Tensor) and x.layout is torch.strided}
        state, dtype = ambient
        torch.set_rng_state(state)
        with torch.autocast("cpu", dtype, enabled=dtype is not None):
            answer = getattr(self, kind)(number, values, needs)
        changed = {n: values[n].detach() for n, x in before.items() if differing(values[n].detach(), x).any()}
        return answer, changed, torch.get_rng_state()

    def forward(self, number: int, args: Sequence[Any], needs: Sequence[bool]) -> tuple[bool, list[Tensor], list[bool]]:
        """Whether the function returns a tensor alone, its outputs, and which of them require grad."""
        leaves = [
            x.detach().requires_grad_(need) if isinstance(x, Tensor) else x for x, need in zip(args, needs, strict=True)
        ]
        with torch.enable_grad():
            found = self.function(*leaves)
        outputs = (found,) if isinstance(found, Tensor) else found
        if not isinstance(outputs, tuple) or not all(isinstance(y, Tensor) for y in outputs):
            kinds = [type(y).__name__ for y in outputs] if isinstance(found, tuple | list) else []
            got = f"{type(found).__name__}{f' of {kinds}' if kinds else ''}"
            raise TypeError(f"the function must return a tensor or a tuple of tensors, got {got}")
        self.calls[number] = (leaves, outputs)
        # A functional collective gives a tensor that waits when it is read, of which pickle knows nothing.
        return isinstance(found, Tensor), [y.detach().clone() for y in outputs], [y.requires_grad for y in outputs]

    def backward(self, number: int, cotangents: Sequence[Any], needs: Sequence[bool]) -> list[Tensor | None]:
        """The gradients of the arguments that need them, None for the others."""
        if number not in self.calls:
            raise RuntimeError("backward must be in the process of its call, before another call fails, got it later")
        leaves, outputs = self.calls[number]
        used = [(y, g) for y, g in zip(outputs, cotangents, strict=True) if g is not None and y.requires_grad]
        wanted = [position for position, need in enumerate(needs) if need]
        found: Any = [None] * len(wanted)
        if used and wanted:
            starts, given = zip(*used, strict=True)
            found = torch.autograd.grad(
                starts, [leaves[position] for position in wanted], given, retain_graph=True, allow_unused=True
            )
        by_position = dict(zip(wanted, found, strict=True))
        return [by_position.get(position) for position in range(len(leaves))]
