"""A function that runs in several processes of torch.distributed at once, as one differentiable function."""

from __future__ import annotations

import inspect
import multiprocessing
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
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, NoReturn

import torch
from torch import Tensor, distributed

# Seconds after which a process notices that nobody waits for its answers.
_TICK = 1.0
# Seconds that the others have for an answer of their own, once a process has raised.
_GRACE = 0.5

# Seconds that a process may wait for the others, once it has waited for too long.
_IMPATIENT = 1.0
# What processes say that did so, or gloo in them.
_LATE = "Timed out"

# The ends of this process's pipes. Its forks have them as well, and would keep others from noticing their end.
_OPEN: weakref.WeakSet[Connection] = weakref.WeakSet()

# Each process gets a request of its own, and answers it.
Requests = Sequence[tuple[Any, ...]]


def in_processes(
    function: Callable[..., Any],
    processes: int = 2,
    *,
    replicated: Collection[int] = (),
    replicated_outputs: bool = False,
    seconds: float = 20,
) -> Callable[..., Any]:
    """A function that calls another one in several processes at once, as one differentiable function of all of them.

    The processes are the default group of torch.distributed, over gloo on the CPU, so that the function may call
    collectives in its forward and in its backward. A tensor argument and an output have one dimension more, the first:
    process r gets ``x[r]`` and returns ``y[r]``. The gradient is that of the sum over all processes, as if each had a
    loss of its own. It is the derivative of the whole, so that finite differences show a wrong one.

    Args:
        function: Takes tensors and other values, returns a tensor or a tuple of tensors.
        processes: The number of processes.
        replicated: The positions of the tensor arguments that are the same in all processes. They have no dimension
            more, and each process has to return the same gradient, that of all.
        replicated_outputs: Whether the outputs are the same in all processes, which have one loss together.
        seconds: How long a process may wait for the others.

    Second derivatives are refused. A call raises ValueError if a tensor has no part for each process, and RuntimeError
    if a process raises, waits for too long, or disagrees with the first on what is replicated.
    """
    if processes < 1:
        raise ValueError(f"processes must be at least 1, got {processes}")
    if isinstance(replicated, str) or not all(isinstance(position, int) for position in replicated):
        raise ValueError(f"replicated must be positions of arguments, such as (0,), got {replicated!r}")
    if not (hasattr(os, "fork") and distributed.is_available() and distributed.is_gloo_available()):
        raise RuntimeError(
            "in_processes must have processes that can be forked, and a torch with gloo: use Linux or macOS"
        )
    group = _Group(function, processes, frozenset(replicated), replicated_outputs, seconds)

    def joint(*args: Any) -> Any:
        return _Joint.apply(group, *args)  # type: ignore[no-untyped-call]

    cls = getattr(function, "__self__", None)
    joint.__name__ = joint.__qualname__ = getattr(cls or function, "__name__", type(function).__name__)
    with suppress(TypeError, ValueError):
        # Findings name the arguments as forward does.
        joint.__signature__ = inspect.signature(getattr(cls, "forward", function))  # type: ignore[attr-defined]
    return joint


class _Joint(torch.autograd.Function):
    """A call in all processes."""

    @staticmethod
    def forward(ctx: Any, group: _Group, *args: Any) -> Any:
        ctx.call = call = _Call(group, args)
        ctx.set_materialize_grads(False)
        # So that second derivatives reach the node that refuses them.
        ctx.save_for_backward(*(x for x in args if isinstance(x, Tensor)))
        outputs = call.forward(ctx.needs_input_grad[1:])
        ctx.mark_non_differentiable(*(y for y, tracked in zip(outputs, call.tracked, strict=True) if not tracked))
        return outputs[0] if call.bare else outputs

    @staticmethod
    def backward(ctx: Any, *cotangents: Tensor | None) -> Any:
        gradients: Any = _Gradients.apply
        return None, *gradients(ctx.call, ctx.needs_input_grad[1:], cotangents, *cotangents, *ctx.saved_tensors)


class _Gradients(torch.autograd.Function):
    """The gradients of a call, for these cotangents. The tensors that come last are what they depend on."""

    @staticmethod
    def forward(_: Any, call: _Call, needs: Sequence[bool], cotangents: Sequence[Tensor | None], *__: Any) -> Any:
        return tuple(call.backward(cotangents, needs))

    @staticmethod
    def backward(_: Any, *__: Any) -> NoReturn:
        raise NotImplementedError("in_processes computes first derivatives only, got a second backward through them")


class _Call:
    """A call that the processes keep for backward, as long as this object lives."""

    def __init__(self, group: _Group, args: Sequence[Any]) -> None:
        self.group, self.args, self.number = group, args, group.numbered()
        self.tracked: list[bool] = []
        self.bare = False

    def forward(self, needs: Sequence[bool]) -> tuple[Tensor, ...]:
        """The outputs of all processes. Sets which require grad in any of them, and whether it is one output alone."""
        parts = [self.group.parts(number, x) for number, x in enumerate(self.args)]
        answers = self.group.answers([("forward", self.number, rank, needs) for rank in zip(*parts, strict=True)])
        weakref.finalize(self, self.group.done.append, self.number)
        self.bare = answers[0][0]
        outputs = [outputs for _, outputs, _ in answers]
        self.tracked = [any(flags) for flags in zip(*(flags for *_, flags in answers), strict=True)]
        whole = self.group.replicated_outputs
        return tuple(_together(f"output {n}", ys, whole) for n, ys in enumerate(zip(*outputs, strict=True)))

    def backward(self, cotangents: Sequence[Tensor | None], needs: Sequence[bool]) -> list[Tensor | None]:
        """The gradients of all arguments, None where they are not needed, or where every process has None."""
        parts = [
            [g] * self.group.size if self.group.replicated_outputs else _each(g, self.group.size) for g in cotangents
        ]
        found = self.group.answers([("backward", self.number, rank, needs) for rank in zip(*parts, strict=True)])
        return [
            _gradient(f"gradient of argument {number}", gradients, x, number in self.group.replicated)
            for number, (x, gradients) in enumerate(zip(self.args, zip(*found, strict=True), strict=True))
        ]


def _each(value: Any, size: int) -> list[Any]:
    """The part of each process."""
    return list(value) if isinstance(value, Tensor) else [value] * size


def _together(what: str, parts: Sequence[Tensor], replicated: bool) -> Tensor:
    """What all processes have. Raises RuntimeError if it is not the same where it should be."""
    shapes = {tuple(part.shape) for part in parts}
    if len(shapes) > 1:
        raise RuntimeError(f"{what} must have one shape in all processes, got {', '.join(map(str, sorted(shapes)))}")
    if not replicated:
        return torch.stack(list(parts))
    for rank, part in enumerate(parts):
        if not torch.allclose(part, parts[0], rtol=1e-5, atol=1e-8, equal_nan=True):
            raise RuntimeError(
                f"{what} must be the same in all processes, since it is replicated: process {rank} has "
                f"{part.tolist()}, process 0 has {parts[0].tolist()}"
            )
    return parts[0]


def _gradient(what: str, parts: Sequence[Tensor | None], x: Any, replicated: bool) -> Tensor | None:
    """The gradient of an argument. None in some of the processes stands for zeros."""
    if all(part is None for part in parts):
        return None
    shape = x.shape if replicated else x.shape[1:]
    filled = [torch.zeros(shape, dtype=x.dtype) if part is None else part for part in parts]
    return _together(what, filled, replicated).to(x.device)


@dataclass
class _Group:
    """The processes of a function: forked at the first call, by each process that calls it."""

    function: Callable[..., Any]
    size: int
    replicated: frozenset[int]
    replicated_outputs: bool
    seconds: float
    pipes: list[Connection] = field(default_factory=list)
    started_by: int = 0
    calls: int = 0
    # The calls that no graph holds any more.
    done: list[int] = field(default_factory=list)
    lock: Any = field(default_factory=threading.RLock)

    def numbered(self) -> int:
        """The number of a new call."""
        self.calls += 1
        return self.calls

    def parts(self, position: int, value: Any) -> list[Any]:
        """What each process gets of an argument. Raises ValueError if a tensor has no part for each."""
        if not isinstance(value, Tensor) or position in self.replicated:
            return [value.detach() if isinstance(value, Tensor) else value] * self.size
        if value.dim() == 0 or len(value) != self.size:
            raise ValueError(
                f"argument {position} must have {self.size} as its first dimension, a part for each process, "
                f"got the shape {tuple(value.shape)}"
            )
        return list(value.detach())

    def answers(self, requests: Requests) -> list[Any]:
        """What the processes answer, in their order. Raises RuntimeError if one raises or does not answer."""
        with self.lock:
            if self.started_by != os.getpid():
                self._start()
            done = [self.done.pop() for _ in range(len(self.done))]
            # All before the first is sent: what cannot be pickled must not leave the others waiting.
            messages = [pickle.dumps((done, *request)) for request in requests]
            for pipe, message in zip(self.pipes, messages, strict=True):
                # Who has died says so by having no answer.
                with suppress(OSError):
                    pipe.send_bytes(message)
            return self._answered()

    def _answered(self) -> list[Any]:
        found = self._received()
        failed = {rank: answer for rank, answer in found.items() if isinstance(answer, _Failed)}
        if len(found) < self.size and not failed:
            failed = {rank: _late(self.seconds) for rank in range(self.size) if rank not in found}
        if not failed:
            return [found[rank] for rank in range(self.size)]
        # Who has waited once for too long waits at every call, of which a check makes many.
        if any(_LATE in each.how for each in failed.values()):
            self.seconds = min(self.seconds, _IMPATIENT)
        self.stop()
        raise RuntimeError("; ".join(f"process {rank} {each.how}" for rank, each in sorted(failed.items())))

    def _received(self) -> dict[int, Any]:
        """The answers that come in time, by the number of the process."""
        found: dict[int, Any] = {}
        until = time.monotonic() + self.seconds + _GRACE
        while len(found) < self.size:
            waiting: dict[Any, int] = {pipe: rank for rank, pipe in enumerate(self.pipes) if rank not in found}
            ready = wait(list(waiting), max(0, until - time.monotonic()))
            if not ready:
                break
            for pipe in ready:
                found[waiting[pipe]] = answer = _answer(pipe)
                if isinstance(answer, _Failed):
                    until = min(until, time.monotonic() + _GRACE)
        return found

    def stop(self) -> None:
        """End the processes; the next call starts others."""
        for pipe in self.pipes:
            pipe.close()
        self.pipes, self.started_by = [], 0

    def _start(self) -> None:
        self.pipes, self.started_by = [], os.getpid()
        context: Any = multiprocessing.get_context("fork")
        folder = tempfile.mkdtemp()
        for rank in range(self.size):
            mine, theirs = context.Pipe()
            _OPEN.add(mine)
            process = context.Process(target=_serve, args=(theirs, self, rank, Path(folder, "store")), daemon=True)
            with warnings.catch_warnings():
                # Of threads that only wait. The function under test runs in a process that has none.
                warnings.filterwarnings("ignore", ".*multi-threaded, use of fork", DeprecationWarning)
                process.start()
            theirs.close()
            self.pipes.append(mine)
        try:
            self._answered()
        finally:
            shutil.rmtree(folder, ignore_errors=True)


# In the processes.


@dataclass(frozen=True)
class _Failed:
    """Why a process has no answer, in words that follow its number."""

    how: str


def _late(seconds: float) -> _Failed:
    return _Failed(f"gave no answer. {_LATE} after {seconds:g} s")


def _answer(pipe: Any) -> Any:
    try:
        return pickle.loads(pipe.recv_bytes())
    except (EOFError, OSError):
        return _Failed("died")


def _serve(pipe: Connection, group: _Group, rank: int, store: Path) -> NoReturn:
    """Answer requests until nobody asks any more."""
    parent = os.getppid()
    # An interrupt at a terminal is for the one that asks, and handlers of it say nothing about this process.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    for each in list(_OPEN):
        each.close()
    with suppress(EOFError, OSError):
        pipe.send_bytes(pickle.dumps(_caught(lambda: _join(group, rank, store))))
        served = _Served(group.function)
        while parent == os.getppid():
            if pipe.poll(_TICK):
                pipe.send_bytes(pickle.dumps(_caught(served.answer, *pickle.loads(pipe.recv_bytes()))))
    os._exit(0)


def _caught(action: Callable[..., Any], *args: Any) -> Any:
    """What an action returns, or why it does not."""
    try:
        return action(*args)
    except Exception as raised:  # noqa: BLE001 - the parent raises it
        return _Failed(f"raised {type(raised).__name__}: {raised}")


def _join(group: _Group, rank: int, store: Path) -> None:
    """Make this process one of the group."""
    with suppress(AttributeError):
        # What is imported as torch need not have it.
        torch.set_num_threads(1)
    # Nobody reads what several processes print, and what is an error around the call is none in here.
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


class _Served:
    """The calls in one process: the leaves and the outputs of each, by its number."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.calls: dict[int, tuple[list[Any], tuple[Tensor, ...]]] = {}

    def answer(self, done: Sequence[int], kind: str, number: int, values: Sequence[Any], needs: Sequence[bool]) -> Any:
        """The answer to a request. The calls that are done are dropped."""
        for each in done:
            self.calls.pop(each, None)
        return getattr(self, kind)(number, values, needs)

    def forward(self, number: int, args: Sequence[Any], needs: Sequence[bool]) -> tuple[bool, list[Tensor], list[bool]]:
        """Whether the function returns a tensor alone, its outputs, and which of them require grad."""
        leaves = [
            x.detach().requires_grad_(need) if isinstance(x, Tensor) else x for x, need in zip(args, needs, strict=True)
        ]
        with torch.enable_grad():
            found = self.function(*leaves)
        outputs = (found,) if isinstance(found, Tensor) else found
        if not isinstance(outputs, tuple) or not all(isinstance(y, Tensor) for y in outputs):
            raise TypeError(f"the function must return a tensor or a tuple of tensors, got {type(found).__name__}")
        self.calls[number] = (leaves, outputs)
        # A functional collective gives a tensor that waits when it is read, of which pickle knows nothing.
        return isinstance(found, Tensor), [y.detach().clone() for y in outputs], [y.requires_grad for y in outputs]

    def backward(self, number: int, cotangents: Sequence[Any], needs: Sequence[bool]) -> list[Tensor | None]:
        """The gradients of the arguments that need them, None for the others."""
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
