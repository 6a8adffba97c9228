"""Records how a program calls its custom Functions, within that program.

Each kind of call is a line of JSON as soon as it is seen. Of what a tensor holds are written: the least and the
largest, of integers also what is apart from the others, of floating numbers whether they are a mask or a special
matrix, and of a tensor without dimensions that belongs to an object its number.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import Any

from . import applying
from .arguments import PACKAGE, described, is_tensor, key_of, value_range
from .lines import Lines

# Kinds of calls of one Function that are told apart. What comes after these is only counted.
MOST_KINDS = 200
# Values are looked at in calls whose number is a power of two, up to this one.
_LAST_LOOK = 64


def start(folder: str) -> None:
    """Record into files of this folder."""
    _WRITING.append(Lines(folder, end=_end, forget=_forget))
    applying.through(_made)


def stop() -> None:
    """Write how often each kind of call was made; later calls are not recorded."""
    _WRITING[0].end()


def _end() -> None:
    for known in list(_KNOWN.values()):
        known.end()


def _forget() -> None:
    _KNOWN.clear()


def _made(inner: Callable[..., Any], cls: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Make a call, and record it if its kind is new."""
    kind = None if _WRITING[0].ended else _noted(cls, args, kwargs)
    if kind is None:
        return inner(cls, *args, **kwargs)
    before = _random_states()
    try:
        outputs = inner(cls, *args, **kwargs)
    except BaseException:
        _safely(cls, kind.raised)
        raise
    _safely(cls, partial(kind.returned, args, outputs, before != _random_states()))
    return outputs


def _noted(cls: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Kind | None:
    """The kind of a call, if it is new."""
    return _safely(cls, lambda: (_KNOWN.get(cls) or _added(cls)).note(args, kwargs))


def _random_states() -> list[Any]:
    """The states of the random numbers of torch on CPUs, of NumPy and of Python; nothing if they cannot be read."""
    try:
        found: list[Any] = [sys.modules["torch"].random.default_generator.get_state().numpy().tobytes()]
        if "random" in sys.modules:
            found.append(sys.modules["random"].getstate())
        if "numpy.random" in sys.modules:
            _, numbers, *others = sys.modules["numpy.random"].get_state()
            found.append((numbers.tobytes(), *others))
        return found
    except Exception:  # noqa: BLE001 - tracers have no values
        return []


def _safely(cls: Any, action: Callable[[], _Kind | None]) -> _Kind | None:
    """Do something that must not break the program: what goes wrong ends the recording of that Function."""
    try:
        return action()
    except Exception:  # noqa: BLE001 - arguments and outputs may be anything
        _KNOWN[cls] = _Nothing()
        return None


_WRITING: list[Lines] = []


class _Nothing:
    """A Function that is not recorded."""

    def note(self, _args: tuple[Any, ...], _kwargs: dict[str, Any]) -> _Kind | None:
        return None

    def end(self) -> None:
        pass


# The Functions, by class; those that are defined within a function are made anew again and again, and kept by name.
_KNOWN: dict[Any, _Function | _Nothing] = {}


def _added(cls: Any) -> _Function | _Nothing:
    with _WRITING[0].lock:
        key = f"{cls.__module__}:{cls.__qualname__}" if "<locals>" in cls.__qualname__ else cls
        if key not in _KNOWN:
            operator, _, backward = applying.operator(cls)
            mine = operator or str(cls.__module__).partition(".")[0] != PACKAGE
            _KNOWN[key] = _Function(cls, operator, backward) if mine else _Nothing()
        return _KNOWN[key]


class _Function:
    """A Function of the program, with the kinds of its calls."""

    def __init__(self, cls: Any, operator: str, backward: Any) -> None:
        self.operator = operator
        self.kinds: dict[Any, _Kind] = {}
        self.begun = self.further = 0
        self.name = operator or f"{cls.__module__}:{cls.__qualname__}"
        _WRITING[0].write(function=self.name, **applying.about(cls, operator, backward))

    def note(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Kind | None:
        """Count a call. Returns its kind if it is new."""
        if self.operator:
            args, kwargs = args[:-1], args[-1].keyword_only_args
        key = (tuple(map(key_of, args)), tuple((name, key_of(kwargs[name])) for name in sorted(kwargs)))
        kind = self.kinds.get(key)
        if kind is not None:
            kind.count += 1
            if kind.count <= _LAST_LOOK and kind.count & (kind.count - 1) == 0:
                kind.look(args)
            return None
        with _WRITING[0].lock:
            if len(self.kinds) >= MOST_KINDS or self.begun >= 2 * MOST_KINDS:
                self.further += 1
                return None
            kind = self.kinds[key] = _Kind(self, key, self.begun)
            self.begun += 1
        kind.describe(args, kwargs)
        return kind

    def end(self) -> None:
        for kind in list(self.kinds.values()):
            kind.say(count=kind.count)
        if self.further:
            _WRITING[0].write(function=self.name, further=self.further)


class _Kind:
    """A kind of call: the shapes, dtypes and so on of its tensors, and its other arguments."""

    def __init__(self, function: _Function, key: Any, number: int) -> None:
        self.function, self.key, self.number, self.count = function, key, number, 1

    def say(self, **what: Any) -> None:
        _WRITING[0].write(function=self.function.name, kind=self.number, **what)

    def describe(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.say(args=list(map(described, args)), kwargs={name: described(kwargs[name]) for name in kwargs}, count=1)
        self.look(args)

    def look(self, args: tuple[Any, ...]) -> None:
        """Write what the values of tensors are."""
        self.say(count=self.count, values={str(n): value_range(x) for n, x in enumerate(args) if is_tensor(x)})

    def raised(self) -> None:
        """A call that raises shows what a Function does not take."""
        self.function.kinds.pop(self.key, None)
        self.say(raised=True)

    def returned(self, args: tuple[Any, ...], outputs: Any, drew: bool) -> None:
        """Write which arguments are returned, as changed ones are, and whether random numbers were drawn."""
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        inplace = [n for n, x in enumerate(args) if is_tensor(x) and any(x is y for y in outputs)]
        self.say(count=self.count, inplace=inplace, random=drew)
