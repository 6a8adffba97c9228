"""The process under test: it has the implementation, and does what the suite's process asks.

``python -m autograd_conformance.implementations.separate_process DESCRIPTOR NAME`` is how `separate` starts it.
"""

from __future__ import annotations

import ctypes
import operator
import signal
import socket
import sys
import traceback
from collections.abc import Callable
from functools import cache
from itertools import count
from typing import Any

from autograd_conformance import implementations
from autograd_conformance.implementations.protocol import Implementation, Unavailable
from autograd_conformance.implementations.separate_messages import Channel, Lost, Message, Other
from autograd_conformance.reference.functions import EXHIBITS, FUNCTIONS
from autograd_conformance.reference.namespace import ARRAY_NAMES

# What may be asked of an adapter.
ASKED = (
    "array", "vjp", "backward", "jvp", "vmap", "batched_vjp", "compile", "checkpoint", "no_grad", "autocast", "offload",
    "numpy", "unusual", "fill_", "start_device", "limit_threads", "reseed", "new_memory",
)  # fmt: skip

# The operators that may be applied to tensors.
OPERATORS = ("add", "sub", "mul", "truediv", "matmul", "pow", "neg", "getitem")

# The options of a request are words, and these are the functions of the array namespace.
NAMES = (*ARRAY_NAMES, "copy")


class Aborted(BaseException):
    """A function in the suite's process raised; that process knows what."""


class Callback:
    """A function in the suite's process, called with tensors."""

    def __init__(self, process: Process, number: str) -> None:
        self._process, self._number = process, number

    def __call__(self, *args: Any) -> Any:
        return self._process.call(self._number, args)

    def __del__(self) -> None:
        self._process.unused.append(self._number)


class Process:
    """Keeps the tensors, callables, contexts and exceptions that the suite's process knows by number."""

    def __init__(self, channel: Channel, adapter: Implementation) -> None:
        self._channel, self._adapter, self._numbers = channel, adapter, count()
        self._kept: dict[int, Any] = {}
        # The last exception, with its number.
        self._raised: tuple[int, BaseException] | None = None
        # The functions of the suite's process that are not used any more.
        self.unused: list[str] = []

    def serve(self) -> None:
        """Answer requests until the suite's process ends."""
        self._send("returned", self._claims(), self._nothing)
        while True:
            self._answer(self._channel.receive())

    def call(self, number: str, args: tuple[Any, ...]) -> Any:
        """The result of a function in the suite's process."""
        self._send("given", args, self._other, call=number)
        while True:
            message = self._channel.receive()
            if "do" in message.fields:
                self._answer(message)
            elif "returned" in message.fields:
                return message.get("returned", self._made)
            else:
                # An exception of this process goes on through the function.
                last, raised = self._raised or (-1, Aborted())
                raise raised if message.fields["raised"] == last else Aborted

    def _answer(self, request: Message) -> None:
        for kept in request.fields["drop"]:
            self._kept.pop(kept, None)
        try:
            args, kwargs = request.get("args", self._made), dict(request.get("kwargs", self._made))
            do = request.fields["do"]
            # An array may be a tensor of the implementation.
            self._send("returned", self._done(do, args, kwargs), self._nothing if do == "numpy" else self._other)
        except Lost:
            raise
        except BaseException as raised:  # noqa: BLE001 - whatever it is, it is the answer
            refusal = isinstance(raised, self._adapter.refusals)
            message = "".join(traceback.format_exception_only(raised)).strip().partition(": ")[2]
            self._raised = next(self._numbers), raised
            found = [type(raised).__name__, message[:2000], refusal, self._raised[0]]
            self._channel.send(Message({"raised": found, "drop": []}))

    def _done(self, do: str, args: Any, kwargs: dict[str, Any]) -> Any:
        if do in ASKED:
            return getattr(self._adapter, do)(*args, **kwargs)
        return _ACTIONS[do](self, *args, **kwargs)

    def _claims(self) -> list[Any]:
        """What the adapter claims, as pairs of a name and a value."""
        i, found = self._adapter, self._adapter.environment()
        devices = (i.devices(), i.simulated_devices(), i.abstract_devices())
        plain = ("name", "empty", "shapes_per_rank", "share_of_examples", "keeps_contract", "needs_setup_context")
        return [
            *((name, getattr(i, name)) for name in (*plain, "zeros_for_none")),
            *((name, sorted(getattr(i, name))) for name in ("capabilities", "emulated")),
            ("dtypes", list(i.dtypes)),
            ("environment", [str(found.version), str(found.location)]),
            ("parts", [str(part.__file__) for part in i.parts]),
            ("files", [str(file) for file in i.files()]),
            ("devices", [list(each) for each in devices]),
            ("lacking", [[device, sorted(i.lacking(device))] for each in devices for device in each]),
        ]

    # Messages.

    def _send(self, field: str, value: Any, other: Other, **fields: Any) -> None:
        message = Message(fields)
        message.put(field, value, other)
        message.fields["drop"], self.unused = self.unused, []
        self._channel.send(message)

    def _keep(self, value: Any) -> int:
        number = next(self._numbers)
        self._kept[number] = value
        return number

    def _nothing(self, _: Any) -> None:
        """For values that are sent as they are."""

    def _other(self, value: Any) -> tuple[str, Any] | None:
        if self._adapter.is_tensor(value):
            return "tensor", [self._keep(value), *self._described(value)]
        if hasattr(value, "__enter__"):
            return "context", self._keep(value)
        if callable(value):
            return "callable", self._keep(value)
        return None

    def _described(self, tensor: Any) -> list[Any]:
        found = self._adapter.describe(tensor)
        return [list(map(int, found.shape)), str(found.dtype), str(found.device)]

    def _made(self, tag: str, number: Any) -> Any:
        return Callback(self, number) if tag == "function" else self._kept[number]

    # What may be asked that is no method of an adapter.

    def _function(self, name: str) -> tuple[Callable[..., Any], bool]:
        """A documented Function as users call it, and whether it has a setup_context."""
        cls = self._class(name)
        inherited = getattr(self._adapter.ag.Function, "setup_context", None)
        return self._adapter.function(cls), getattr(cls, "setup_context", None) is not inherited

    @cache  # noqa: B019 - there is one process
    def _class(self, name: str) -> Any:
        return self._adapter.build(FUNCTIONS[name] if name in FUNCTIONS else EXHIBITS[name].function)

    def _xp(self, name: str, *args: Any, **kwargs: Any) -> Any:
        if name not in NAMES:
            raise ValueError(f"no function of the array namespace: {name}")
        return getattr(self._adapter.xp, name)(*args, **kwargs)

    def _operator(self, name: str, *args: Any) -> Any:
        if name not in OPERATORS:
            raise ValueError(f"no operator: {name}")
        return getattr(operator, name)(*args)

    def _call(self, function: Any, args: Any, kwargs: Any) -> Any:
        return function(*args, **dict(kwargs))

    def _enter(self, context: Any) -> None:
        context.__enter__()

    def _leave(self, context: Any) -> None:
        context.__exit__(None, None, None)


_ACTIONS: dict[str, Callable[..., Any]] = {
    "function": Process._function,
    "xp": Process._xp,
    "operator": Process._operator,
    "call": Process._call,
    "enter": Process._enter,
    "leave": Process._leave,
}


def _end_with_parent() -> None:
    """End this process when the suite's process ends, whatever it does then."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)


def main(descriptor: str, given: str) -> None:
    """Import the adapter with this name, and do what is asked."""
    _end_with_parent()
    channel = Channel(socket.socket(fileno=int(descriptor)))
    try:
        adapter = implementations.load(given)
        implementations.check_version(adapter)
    except Unavailable as problem:
        channel.send(Message({"unavailable": str(problem)}))
        return
    try:
        Process(channel, adapter).serve()
    except Lost:
        return


if __name__ == "__main__":
    main(*sys.argv[1:])
