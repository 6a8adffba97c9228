"""Messages between the suite's process and the process under test: JSON, and the bytes of arrays after it.

What is read is data, and runs no code. A message that is not well formed raises `Malformed`.
"""

from __future__ import annotations

import json
import re
import socket
import struct
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

# The lengths of the JSON and of the bytes of the arrays, and the most of both.
_LENGTHS = struct.Struct("<QQ")
_LONGEST, _LARGEST = 2**26, 2**30

# The dtypes in which arrays are sent; a bfloat16 tensor is read as float64.
_DTYPES = frozenset((
    "bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64", "complex64", "complex128",
))  # fmt: skip

_NAME = re.compile(r"[A-Za-z_]\w{0,79}")

# What is neither JSON nor an array is an object of one field, whose name is one of these.
_TAGS = (
    "tuple", "list", "array", "complex", "slice", "ellipsis", "tensor", "callable", "context", "kept", "function",
)  # fmt: skip

# The tag and the data of what only one of the processes has, and None for anything else.
Other = Callable[[Any], tuple[str, Any] | None]
Made = Callable[[str, Any], Any]


class Malformed(Exception):
    """A message of the other process that cannot be read; the text says why."""


class Lost(Exception):
    """The other process has closed its end."""


class Raised(NamedTuple):
    """An exception of the process under test: its type, its message, and whether it refuses the call.

    ``number`` is how that process names it.
    """

    type: str
    message: str
    refusal: bool
    number: int

    @classmethod
    def read(cls, data: Any) -> Raised:
        """The exception of a message. Raises Malformed."""
        kinds = (str, str, bool, int)
        if not isinstance(data, list) or [type(part) for part in data] != list(kinds) or not _NAME.fullmatch(data[0]):
            raise Malformed(f"no exception: {str(data)[:80]}")
        return cls(*data)


class Message:
    """A message that is read or written: ``fields``, and the arrays that its values refer to, in order."""

    def __init__(self, fields: dict[str, Any] | None = None, arrays: list[Any] | None = None) -> None:
        self.fields, self.arrays = fields or {}, arrays or []

    def put(self, field: str, value: Any, other: Other) -> None:
        """Set a field to a value; ``other`` packs what only this process has. Raises TypeError."""
        self.fields[field] = self._packed(value, other)

    def get(self, field: str, made: Made) -> Any:
        """The value of a field. ``made`` makes what `put` had from ``other``. Raises Malformed."""
        try:
            return self._unpacked(self.fields[field], made)
        except (LookupError, TypeError, ArithmeticError, ValueError, RecursionError) as problem:
            raise Malformed(f"{type(problem).__name__} in {field}: {problem}") from None

    def _packed(self, value: Any, other: Other) -> Any:
        if value is None or type(value) in (bool, int, float, str):
            return value
        if isinstance(value, tuple | list):
            tag = "tuple" if isinstance(value, tuple) else "list"
            return {tag: [self._packed(each, other) for each in value]}
        mine = other(value)
        if mine is not None:
            return dict([mine])
        if isinstance(value, np.ndarray) and value.dtype.name in _DTYPES:
            self.arrays.append(value)
            return {"array": len(self.arrays) - 1}
        if isinstance(value, np.generic):
            return self._packed(value.item(), other)
        if isinstance(value, complex):
            return {"complex": [value.real, value.imag]}
        if isinstance(value, slice):
            return {"slice": [value.start, value.stop, value.step]}
        if value is ...:
            return {"ellipsis": 0}
        raise TypeError(f"a {type(value).__name__} cannot be sent to another process")

    def _unpacked(self, data: Any, made: Made) -> Any:
        if not isinstance(data, dict):
            return data
        ((tag, inside),) = data.items()
        if tag not in _TAGS:
            raise ValueError(f"unknown tag {tag[:20]!r}")
        if tag in ("tuple", "list"):
            parts = [self._unpacked(each, made) for each in inside]
            return tuple(parts) if tag == "tuple" else parts
        if tag == "array":
            return self.arrays[inside]
        if tag == "complex":
            return complex(*inside)
        if tag == "slice":
            return slice(*inside)
        return ... if tag == "ellipsis" else made(tag, inside)


class Channel:
    """One end of the connection between the two processes."""

    def __init__(self, end: socket.socket) -> None:
        self._end = end

    def send(self, message: Message) -> None:
        """Send a message. Raises Lost."""
        text, body = packed(message)
        try:
            self._end.sendall(_LENGTHS.pack(len(text), len(body)) + text + body)
        except OSError:
            raise Lost from None

    def receive(self) -> Message:
        """The next message. Raises Malformed or Lost."""
        length, size = _LENGTHS.unpack(self._read(_LENGTHS.size))
        if length > _LONGEST or size > _LARGEST:
            raise Malformed(f"a message of {length} and {size} bytes")
        text, body = self._read(length), self._read(size)
        try:
            fields = json.loads(text)
            return Message(fields, list(_arrays(fields.pop("arrays"), body)))
        except (AttributeError, LookupError, TypeError, ValueError, RecursionError, OverflowError) as problem:
            raise Malformed(f"{type(problem).__name__}: {problem}") from None

    def _read(self, count: int) -> bytearray:
        found = bytearray(count)
        view, read = memoryview(found), 0
        while read < count:
            try:
                more = self._end.recv_into(view[read:])
            except ConnectionError:
                more = 0
            if not more:
                raise Lost
            read += more
        return found

    def close(self) -> None:
        """Close this end."""
        self._end.close()


def packed(message: Message) -> tuple[bytes, bytes]:
    """The JSON of a message, and the bytes of its arrays."""
    described = [[array.dtype.name, list(array.shape)] for array in message.arrays]
    text = json.dumps({**message.fields, "arrays": described}).encode()
    return text, b"".join(array.tobytes() for array in message.arrays)


def _arrays(described: Any, body: bytearray) -> Any:
    """The arrays of a message; all of its bytes belong to one. Raises ValueError."""
    start = 0
    for dtype, shape in described:
        if dtype not in _DTYPES or not all(type(side) is int and side >= 0 for side in shape):
            raise ValueError(f"an array of {str(dtype)[:20]} {str(shape)[:80]}")
        # A byte that is neither 0 nor 1 is no bool of NumPy's.
        kind, count = np.dtype("uint8" if dtype == "bool" else dtype), 1
        for side in shape:
            count *= side
        end = start + count * kind.itemsize
        if end > len(body):
            raise ValueError("an array is cut off")
        array = np.frombuffer(body[start:end], kind).reshape(shape)
        yield array != 0 if dtype == "bool" else array
        start = end
    if start != len(body):
        raise ValueError("bytes that belong to no array")
