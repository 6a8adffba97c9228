"""An implementation in a process of its own: this one never imports it, and gets arrays and descriptions alone.

What an adapter is asked is asked of its own copy in the process under test, `separate_process`. Tensors and callables
stay there: here they are a number and what that process says about them. What it sends is data, and decides nothing.
"""

from __future__ import annotations

import importlib.util
import os
import re
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from functools import cache, partial
from importlib import import_module
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

import numpy as np
from packaging.specifiers import SpecifierSet
from packaging.version import InvalidVersion, Version

from autograd_conformance import implementations
from autograd_conformance.implementations.deviations import Deviation
from autograd_conformance.implementations.protocol import (
    CAPABILITIES,
    DTYPES,
    BackwardPass,
    Description,
    Environment,
    Implementation,
    Mask,
    Tensors,
    Unavailable,
)
from autograd_conformance.implementations.separate_messages import Channel, Lost, Malformed, Message, Raised
from autograd_conformance.implementations.separate_process import ASKED, OPERATORS
from autograd_conformance.reference.definitions import Function

# Seconds for the import of an implementation.
START = 300.0

_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,39}")


class NotSeparable(BaseException):
    """A test asks for more than calls, arrays and descriptions: a mistake of the suite, and no exception of a call."""


class Remote(Exception):
    """An exception of the process under test."""

    number = -1


class Refusal(Remote):
    """One with which the implementation refuses a misuse."""


@cache
def _kind(name: str, refusal: bool) -> type[Remote]:
    """A class with the name of the exception in the process under test."""
    return type(name, (Refusal if refusal else Remote,), {})


class Kept:
    """Something that the process under test keeps, by its number there."""

    def __init__(self, process: Separate, number: int) -> None:
        self._process, self.number = process, number

    def __del__(self) -> None:
        self._process.unused.append(self.number)


class Handle(Kept):
    """A tensor."""

    # NumPy's numbers leave operators to this class.
    __array_ufunc__ = None

    def __init__(self, process: Separate, number: int, description: Description) -> None:
        super().__init__(process, number)
        self.description, self.shape, self.ndim = description, description.shape, len(description.shape)

    def _operator(self, name: str, *others: Any, reflected: bool = False) -> Any:
        return self._process.ask("operator", name, *(reversed((self, *others)) if reflected else (self, *others)))


for _name in OPERATORS:
    setattr(Handle, f"__{_name}__", lambda self, *others, name=_name: self._operator(name, *others))
for _name in ("add", "sub", "mul", "truediv"):
    setattr(Handle, f"__r{_name}__", lambda self, other, name=_name: self._operator(name, other, reflected=True))


class Remotely(Kept):
    """A callable."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._process.ask("call", self, args, list(kwargs.items()))


class Within(Kept, AbstractContextManager[None]):
    """A context."""

    def __enter__(self) -> None:
        self._process.ask("enter", self)

    def __exit__(self, *_: object) -> None:
        self._process.ask("leave", self)


class Namespace:
    """The array namespace of the process under test."""

    def __init__(self, process: Separate) -> None:
        self._process = process

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("_"):
            raise AttributeError(name)
        return partial(self._process.ask, "xp", name)


class Separate(Implementation):
    """The implementation with that name, in a process of its own that this one starts with an interpreter.

    ``lost`` is called with the reason when that process has ended, or sent what cannot be read.
    """

    refusals = (Refusal,)
    xp: Any
    # A documented Function stands for itself: its body is built in the process under test alone.
    ag = SimpleNamespace(Function=type("Function", (), {}))

    def __init__(self, given: str, python: str | None = None) -> None:
        self.xp, self.unused = Namespace(self), list[int]()
        self.lost: Callable[[str], None] = self._unavailable
        # What the process under test may call, by number.
        self._functions: dict[str, Callable[..., Any]] = {}
        self._numbers = count()
        # The documented Functions by what stands for them here.
        self._names: dict[Any, Remotely] = {}
        # What a function of this process raised while the process under test called it.
        self._raised: BaseException | None = None
        mine, theirs = socket.socketpair()
        self._channel = Channel(mine)
        words = [python or sys.executable, "-m", "autograd_conformance.implementations.separate_process"]
        # What it prints could look like a verdict.
        null = subprocess.DEVNULL
        self._child = subprocess.Popen(
            [*words, str(theirs.fileno()), given], pass_fds=[theirs.fileno()], env=environment(python),
            stdin=null, stdout=null, stderr=null, start_new_session=True,
        )  # fmt: skip
        theirs.close()
        if not select.select([mine], [], [], START)[0]:
            self._lose(f"did not import {given} within {START:g} s")
        first = self._receive()
        if "unavailable" in first.fields:
            raise Unavailable(str(first.fields["unavailable"]))
        try:
            self._claim(given, dict(self._value(first, "returned")))
        except (LookupError, TypeError, ValueError, InvalidVersion) as problem:
            self._lose(f"claims what cannot be: {problem}")

    def _claim(self, given: str, claims: dict[str, Any]) -> None:
        """Take over what the adapter claims, if that can be. Raises ValueError or what wrong types raise."""
        self.name = given if given in implementations.ADAPTERS else claims["name"]
        self.capabilities, self.emulated = frozenset(claims["capabilities"]), frozenset(claims["emulated"])
        self.dtypes, self._devices = tuple(claims["dtypes"]), [tuple(each) for each in claims["devices"]]
        self._lacking = {device: frozenset(names) for device, names in claims["lacking"]}
        self._environment = Environment(*map(str, claims["environment"]))
        self._files = [file for file in map(Path, claims["files"]) if file.is_file()]
        self.parts = tuple(SimpleNamespace(__file__=str(file)) for file in claims["parts"])
        for name in ("empty", "needs_setup_context", "zeros_for_none", "keeps_contract"):
            setattr(self, name, claims[name] is True)
        self.share_of_examples = float(claims["share_of_examples"])
        self.shapes_per_rank = None if claims["shapes_per_rank"] is None else int(claims["shapes_per_rank"])
        words = [self.name, *(device for each in self._devices for device in each)]
        known = self.capabilities | self.emulated <= CAPABILITIES.keys() and set(self.dtypes) <= set(DTYPES)
        if not 0 < self.share_of_examples <= 1:
            raise ValueError("a share of examples that is none")
        if not known or len(self._devices) != 3 or not all(map(_WORD.fullmatch, words)):
            raise ValueError("an unknown capability or dtype, or a name or device that is no word")
        self.deviations = _deviations(given, self._environment.version)

    # What is known here.

    def environment(self) -> Environment:
        return self._environment

    def files(self) -> Sequence[Path]:
        return self._files

    def devices(self) -> tuple[str, ...]:
        return self._devices[0]

    def simulated_devices(self) -> tuple[str, ...]:
        return self._devices[1]

    def abstract_devices(self) -> tuple[str, ...]:
        return self._devices[2]

    def lacking(self, device: str) -> frozenset[str]:
        return self._lacking.get(device, frozenset())

    def is_tensor(self, value: Any) -> bool:
        return isinstance(value, Handle)

    def describe(self, tensor: Any) -> Description:
        return tensor.description

    # What the process under test is asked.

    def build(self, function: Function) -> Any:
        call, separate = self.ask("function", function.name)
        cls = type(function.name, (self.ag.Function,), {"setup_context": None} if separate else {})
        self._names[cls] = call
        return cls

    def function(self, cls: Any) -> Callable[..., Any]:
        if cls not in self._names:
            raise NotSeparable("another Function than a documented one")
        return self._names[cls]

    def numpy(self, tensor: Any) -> Any:
        found = self.ask("numpy", tensor)
        if not isinstance(found, np.ndarray) or found.shape != tensor.shape:
            self._lose(f"sent no array of shape {tensor.shape}")
        return found

    def array(self, values: Any, dtype: str, device: str) -> Any:
        return self.ask("array", np.asarray(values), dtype, device)

    def vjp(
        self, f: Callable[..., Any], primals: Sequence[Any], *, track: Mask | None = None
    ) -> tuple[Tensors, Callable[..., Tensors]]:
        found = self.ask("vjp", f, tuple(primals), track=track)
        if not isinstance(found, tuple) or [type(part) for part in found] != [tuple, Remotely]:
            self._lose("sent no outputs and pullback")
        return found

    def differentiate(self, f: Callable[..., Tensors], primals: Tensors, tracked: Mask) -> tuple[Tensors, BackwardPass]:
        raise NotSeparable("`vjp` is asked instead")

    def ask(self, do: str, *args: Any, **kwargs: Any) -> Any:
        """What the process under test answers. Raises Remote for what it raised."""
        request = Message({"do": do})
        request.put("args", args, self._other)
        request.put("kwargs", list(kwargs.items()), self._other)
        request.fields["drop"], self.unused = self.unused, []
        self._send(request)
        while "call" in (reply := self._receive()).fields:
            self._call(reply)
        if self._raised is not None:
            raised, self._raised = self._raised, None
            raise raised
        if "raised" in reply.fields:
            raise self._exception(reply)
        return self._value(reply, "returned")

    def _call(self, request: Message) -> None:
        """Call a function of this process, as the other one asks."""
        function, args = self._functions.get(str(request.fields["call"])), self._value(request, "given")
        if function is None or not isinstance(args, tuple):
            self._lose("called a function that there is not")
        answer = Message()
        try:
            answer.put("returned", function(*args), self._other)
        except Remote as raised:
            answer = Message({"raised": raised.number})
        except BaseException as raised:  # noqa: BLE001 - it goes on when the other process has heard of it
            self._raised = raised
            answer = Message({"raised": None})
        self._send(answer)

    def _exception(self, reply: Message) -> Remote:
        try:
            found = Raised.read(reply.fields["raised"])
        except Malformed as problem:
            self._lose(f"sent what cannot be read: {problem}")
        raised = _kind(found.type, found.refusal)(found.message)
        raised.number = found.number
        return raised

    # Messages.

    def _other(self, value: Any) -> tuple[str, Any] | None:
        if isinstance(value, Kept):
            return "kept", value.number
        if callable(value):
            number = str(next(self._numbers))
            self._functions[number] = value
            return "function", number
        return None

    def _made(self, tag: str, data: Any) -> Any:
        if tag == "tensor":
            number, shape, dtype, device = data
            if dtype not in DTYPES or not all(type(side) is int and side >= 0 for side in shape):
                raise ValueError(f"no description: {str(data)[:80]}")
            return Handle(self, int(number), Description(tuple(shape), dtype, str(device)))
        return {"callable": Remotely, "context": Within}[tag](self, int(data))

    def _send(self, message: Message) -> None:
        try:
            self._channel.send(message)
        except Lost:
            self._lose("")

    def _receive(self) -> Message:
        try:
            found = self._channel.receive()
        except Malformed as problem:
            self._lose(f"sent what cannot be read: {problem}")
        except Lost:
            self._lose("")
        unused = found.fields.get("drop")
        for number in unused if isinstance(unused, list) else ():
            self._functions.pop(str(number), None)
        return found

    def _value(self, message: Message, field: str) -> Any:
        try:
            return message.get(field, self._made)
        except Malformed as problem:
            self._lose(f"sent what cannot be read: {problem}")

    def _lose(self, reason: str) -> NoReturn:
        """End the process under test, and say why; "" if it ended by itself."""
        if not reason:
            with suppress(subprocess.TimeoutExpired):
                reason = _ended(self._child.wait(10))
        self.close()
        self.lost(f"the process under test {reason or 'does not answer'}")
        raise Unavailable(f"the process under test {reason}")

    def _unavailable(self, reason: str) -> None:
        raise Unavailable(reason)

    @property
    def number(self) -> int:
        """The id of the process under test."""
        return self._child.pid

    def close(self) -> None:
        """End the process under test."""
        self._child.kill()
        self._child.wait()
        self._channel.close()


def _not_separable(name: str) -> Callable[..., Any]:
    def refuse(self: Any, *_: Any, **__: Any) -> NoReturn:
        raise NotSeparable(f"{name} asks for more than calls, arrays and descriptions")

    return refuse


def _asked(name: str) -> Callable[..., Any]:
    return lambda self, *args, **kwargs: self.ask(name, *args, **kwargs)


# What is asked as it is, and what nobody may ask.
for _name in set(ASKED) - vars(Separate).keys():
    setattr(Separate, _name, _asked(_name))
for _name in ("requires_grad", "node", "version", "shares_memory", "strides"):
    setattr(Separate, _name, _not_separable(_name))


def _ended(code: int) -> str:
    return f"ended with exit status {code}" if code >= 0 else f"was ended by {signal.Signals(-code).name}"


def _deviations(given: str, version: str) -> tuple[Deviation, ...]:
    """The deviations that the suite's own copy lists for a release, whatever the process under test lists."""
    name = f"{implementations.__name__}.{given}_deviations"
    if given not in implementations.ADAPTERS or importlib.util.find_spec(name) is None:
        return ()
    release, listed = Version(Version(version).base_version), import_module(name).DEVIATIONS
    return tuple(d for d in listed if release in SpecifierSet(d.cause.releases, prereleases=True))


def environment(python: str | None) -> dict[str, str]:
    """The environment of a process of this interpreter, or of another one, which has modules of its own."""
    paths = {} if python else {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    return {**os.environ, **paths, "PYTHONSAFEPATH": "1"}


@cache
def opened(given: str, python: str | None = None) -> Separate:
    """The implementation with this name in a process of its own, of which this process has one. Raises Unavailable."""
    if os.name != "posix":
        raise Unavailable("a separate run needs the processes of a POSIX system")
    try:
        return Separate(given, python)
    except OSError as problem:
        raise Unavailable(f"{python} cannot be started: {problem.strerror}") from None
