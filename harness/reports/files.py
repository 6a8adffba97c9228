"""The files that commands write: what they may overwrite, and how they are written whole or not at all."""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from autograd_conformance.harness.outcomes import UsageProblem

try:
    import fcntl
except ImportError:  # Windows, where two runs in one folder are not noticed
    fcntl = None  # type: ignore[assignment]

# So many bytes at the beginning of a file say what it is.
_HEAD = 65_536


class Kind(NamedTuple):
    """A kind of file: its name, and what its beginning matches if this suite wrote it.

    One that is ``read_again`` after it was written cannot be a pipe or a device.
    """

    name: str
    sign: re.Pattern[bytes]
    read_again: bool = False


REPORT = Kind("a report", re.compile(rb'\{\s*"kind":\s*"header"'), read_again=True)
BASELINE = Kind("a baseline", re.compile(rb"(?s).*# autograd-conformance (baseline|known faults): "), read_again=True)
# Its lines are verified when they are read.
CORPUS = Kind("a corpus", re.compile(rb"(?!\{|<|# autograd-conformance baseline)"), read_again=True)
PAGE = Kind("a page of this suite", re.compile(rb"(?s)<!doctype html>.*<title>autograd-conformance: "))
MARKDOWN = Kind("a summary of this suite", re.compile("### (✅|❌|⚠️) ".encode()))


@dataclass(frozen=True)
class Output:
    """A file that is going to be written; ``what`` and ``option`` name it in messages."""

    path: Path
    kind: Kind
    what: str = "the report"
    option: str = "--report"

    def problem(self, reason: str) -> UsageProblem:
        """The error that it cannot be written."""
        return UsageProblem(
            f"{self.what} cannot be written to {self.path}: {reason}; choose another file with {self.option} FILE"
        )

    def write(self, text: str) -> None:
        """Write the file whole, or leave what is there. Raises UsageProblem."""
        try:
            if self.path.exists() and not _is_replaceable(self.path):
                self.path.write_text(text, encoding="utf-8", newline="\n")
                return
            with Replacement(self.path.resolve()) as new:
                new.write(text.encode())
                new.finish()
        except OSError as problem:
            raise self.problem(problem.strerror or str(problem)) from None


class Replacement:
    """A new file next to ``target``, which takes its place when it is finished, and else is removed."""

    def __init__(self, target: Path) -> None:
        self._target = target
        self._path = target.with_name(f".autograd-conformance-{os.getpid()}-{id(self):x}")
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
        # Without a buffer: closing the file does not try again what could not be written.
        self._file = os.fdopen(os.open(self._path, flags, 0o666), "wb", buffering=0)
        self.placed = False

    def __enter__(self) -> Replacement:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def write(self, data: bytes) -> None:
        """Append to the file. Raises OSError."""
        while data:
            data = data[self._file.write(data) :]

    def finish(self) -> None:
        """Close the file and put it in its place. Raises OSError."""
        os.fsync(self._file.fileno())
        self._file.close()
        self._place()

    def stream(self) -> None:
        """Put the file in its place now: what is written from now on is appended there. Raises OSError."""
        with _mutex(self._target.parent):
            if is_being_written(self._target):
                raise OSError(0, BUSY)
            if fcntl is not None:
                # Released when this process ends, however it ends.
                with suppress(OSError):
                    fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._place()

    def _place(self) -> None:
        with suppress(OSError):
            os.chmod(self._path, self._target.stat().st_mode & 0o777)
        os.replace(self._path, self._target)
        self.placed = True

    def close(self) -> None:
        """Close the file; remove it if it is not in its place."""
        self._file.close()
        if not self.placed:
            self._path.unlink(missing_ok=True)


def _is_replaceable(path: Path) -> bool:
    """Whether a path is a file which another one can replace: no pipe, no device, not the stdout of this process."""
    found = path.stat()
    outputs = [os.fstat(number) for number in (1, 2) if _is_open(number)]
    return path.is_file() and path.resolve().exists() and not any(os.path.samestat(found, one) for one in outputs)


def _is_open(number: int) -> bool:
    with suppress(OSError):
        os.fstat(number)
        return True
    return False


BUSY = "another run is writing it"


@contextmanager
def _mutex(folder: Path) -> Iterator[None]:
    """A context that one process at a time is in, where the file system can do that."""
    if fcntl is None:
        yield
        return
    number = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):
            fcntl.flock(number, fcntl.LOCK_EX)
        yield
    finally:
        os.close(number)


def is_being_written(path: Path) -> bool:
    """Whether another process streams to this file."""
    if fcntl is None or not path.is_file():
        return False
    with path.open("r+b") as file:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError:  # no locks on this file system
            return False
    return False


def verify(outputs: Sequence[Output], inputs: Mapping[str, Path | None], *, alone: bool = True) -> None:
    """Raise UsageProblem for outputs that cannot be written, or would overwrite something; writes nothing.

    ``inputs`` are the files that the command reads, by what they are. A file that exists is overwritten only by one of
    the same kind, and, if this process has to be ``alone``, not while another one writes it.
    """
    taken = [(path, what) for what, path in inputs.items() if path is not None]
    for output in outputs:
        try:
            reason = _reason_against(output) or (BUSY if alone and is_being_written(output.path.resolve()) else "")
            other = next((what for path, what in taken if same(path, output.path)), None)
        except (OSError, RuntimeError) as problem:
            raise output.problem(getattr(problem, "strerror", None) or str(problem)) from None
        if reason:
            raise output.problem(reason)
        if other:
            raise UsageProblem(f"{output.option} {output.path} would overwrite {other}; name another file")
        _verify_kind(output)
        taken.append((output.path, output.what))


def same(one: Path, other: Path) -> bool:
    """Whether two paths are one file, or would be one if they existed, also where case does not count."""
    if one.exists() and other.exists():
        return os.path.samefile(one, other)
    first, second = one.resolve(), other.resolve()
    if one.exists() or other.exists() or not (first.parent.exists() and second.parent.exists()):
        return first == second
    return os.path.samefile(first.parent, second.parent) and _folded(first.name) == _folded(second.name)


def _folded(name: str) -> str:
    return unicodedata.normalize("NFC", name).casefold()


def _reason_against(output: Output) -> str:
    """Why the file cannot be written; empty if it can. Raises OSError."""
    path = output.path
    if path.is_dir():
        return "it is a folder"
    if path.exists() and not _is_replaceable(path):
        if output.kind.read_again:
            return "it is not a file of its own"
        return "" if os.access(path, os.W_OK) else "permission denied"
    target = path.resolve()
    if not target.parent.is_dir():
        return f"there is no folder {path.parent if path.parent.resolve() == target.parent else target.parent}"
    # A file that its owner protects is left alone by root, too.
    protected = target.exists() and not target.stat().st_mode & 0o222
    if protected or not os.access(target if target.exists() else target.parent, os.W_OK):
        return "permission denied"
    if not os.access(target.parent, os.W_OK):
        return f"permission denied in the folder {target.parent}"
    return ""


def _verify_kind(output: Output) -> None:
    """Raise UsageProblem for a file of another kind, which this suite did not write."""
    if not output.path.is_file():
        return
    try:
        with output.path.open("rb") as file:
            head = file.read(_HEAD)
    except OSError as problem:
        raise output.problem(problem.strerror or str(problem)) from None
    if head and output.kind.sign.match(head) is None:
        raise UsageProblem(
            f"{output.path} is not {output.kind.name} and was not changed; "
            f"name another file with {output.option} FILE, or remove this one"
        )
