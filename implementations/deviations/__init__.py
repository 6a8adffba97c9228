"""What the lists of known deviations are made of: what is excused, where, and for which cause."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from packaging.version import InvalidVersion, Version

# A failure as reports/report.schema.json describes it; of a vacuous result the whole line.
Failure = Mapping[str, Any]


class Frequency(Enum):
    """How many of the calls that a test may draw show a deviation."""

    ALWAYS = "all: a few examples are enough to see it"
    USUALLY = "many: a test that passes shows that it is fixed"
    SOMETIMES = "few: a test that passes shows nothing"


class Grade(Enum):
    """How bad a deviation is: the words for it, and the sentence that says when it applies."""

    WRONG = (
        "wrong result or crash",
        "a value, a derivative or the verdict of a check is wrong, or the process dies or does not end. A sentence "
        "that promises the result is quoted.",
    )
    BROKEN = (
        "broken promise",
        "a sentence of the implementation's own documentation promises something else. It is quoted.",
    )
    OUTDATED = (
        "outdated documentation",
        "what happens is sensible and intended, and a sentence of the documentation is stale or wrong. It is quoted.",
    )
    DIFFERENCE = (
        "difference",
        "PyTorch does something else, or its users rely on something else, and no sentence of the implementation's own "
        "documentation promises it.",
    )
    UNCLAIMED = (
        "not claimed",
        "the adapter does not claim what the test needs, and the implementation gives a wrong result without an error "
        "(`silent`), or the process dies or does not end (`dies`). An error would be right.",
    )

    def __init__(self, words: str, applies: str) -> None:
        self.words = words
        self.applies = applies

    @property
    def quotes(self) -> bool:
        """Whether a sentence of the implementation's own documentation says something else."""
        return self not in (Grade.DIFFERENCE, Grade.UNCLAIMED)


@dataclass(frozen=True, kw_only=True)
class Shown(ABC):
    """What a failure looks like. Each kind of failure has a class, which says what its text is.

    ``starting``, ``containing`` and ``ending`` are parts that this text must have.
    """

    starting: str = ""
    containing: str = ""
    ending: str = ""

    def covers(self, failure: Failure) -> bool:
        """Whether the failure looks like this."""
        text = self._text(failure)
        return (
            text is not None
            and text.startswith(self.starting)
            and self.containing in text
            and text.endswith(self.ending)
        )

    @abstractmethod
    def _text(self, failure: Failure) -> str | None:
        """The text of a failure of this kind, None for any other failure."""


@dataclass(frozen=True)
class Found(Shown):
    """A wrong result, by the finding's ``what``: all of it, or parts of it."""

    what: str = ""

    def __post_init__(self) -> None:
        _require(self.what + self.starting + self.containing + self.ending, "Found: without a text it covers anything")

    def _text(self, failure: Failure) -> str | None:
        what = _wrong(failure)
        return what if self.what in ("", what) else None


@dataclass(frozen=True)
class Component(Shown):
    """A wrong element of an output or gradient: of any, or of the one with this name."""

    what: str = ""

    def _text(self, failure: Failure) -> str | None:
        component = failure.get("component", {})
        what: str | None = component["what"] if "index" in component else None
        return what if self.what in ("", what) else None


@dataclass(frozen=True)
class Raised(Shown):
    """An exception of this type that a call raised, by the exception's message."""

    type: str

    def __post_init__(self) -> None:
        _require(self.type, f"{type(self).__name__}: without a type it covers any exception")

    def _text(self, failure: Failure) -> str | None:
        return self._message(failure["got"]) if failure.get("kind") == "raised" else None

    def _message(self, raised: str) -> str | None:
        kind, _, message = raised.partition(": ")
        return message if kind == self.type else None


@dataclass(frozen=True)
class Refused(Raised):
    """A refusal of every example by an exception of this type, by the exception's message."""

    def _text(self, failure: Failure) -> str | None:
        return self._message(failure["excuse"]) if failure.get("vacuous") == "refused" else None


@dataclass(frozen=True, kw_only=True)
class Ended(Shown):
    """The end of a process in one of the listed calls.

    ``call`` is a regular expression for the printed call, or for what the test of a clause had drawn. ``at`` is the
    place where the test stood, as in ``mlx.py in as_numpy``: a function of the framework, or the one that calls it.
    """

    call: str
    at: str = ""

    def __post_init__(self) -> None:
        _require(self.call, f"{type(self).__name__}: without a call it covers the end of any")

    def may_end(self, call: str) -> bool:
        """Whether this is one of the listed calls."""
        return re.search(self.call, call) is not None

    def covers(self, failure: Failure) -> bool:
        called = self.may_end(failure.get("call") or failure.get("chosen") or "")
        return super().covers(failure) and called and self.at in ("", failure.get("at"))


@dataclass(frozen=True, kw_only=True)
class Died(Ended):
    """The death of the process, by what is reported after the words `the process`."""

    def __post_init__(self) -> None:
        super().__post_init__()
        _require(self.starting, "Died: without a text it covers any death")

    def _text(self, failure: Failure) -> str | None:
        return failure["message"].removeprefix("the process ") if failure.get("type") == "Death" else None


@dataclass(frozen=True, kw_only=True)
class Hung(Ended):
    """A call that does not end. It gets less time than others."""

    def __post_init__(self) -> None:
        super().__post_init__()
        _require(self.at, "Hung: without a place it covers an endless loop of the suite")

    def _text(self, failure: Failure) -> str | None:
        return failure["message"] if failure.get("type") == "Hang" else None


# A printed call with a tensor without elements.
WITHOUT_ELEMENTS = r"Tensor\(\([^)]*\b0\b"


def _wrong(failure: Failure) -> str | None:
    """The ``what`` of a finding about a result, None for any other failure."""
    return failure.get("what") if failure.get("kind") != "raised" else None


def _require(text: str, problem: str) -> None:
    if not text.strip():
        raise ValueError(problem)


@dataclass(frozen=True, kw_only=True)
class Cause:
    """Why an implementation deviates, and where to read about it.

    ``grade`` says how bad it is. ``reason`` and ``link`` are for the reader of a report, like the versions on which the
    deviation was ``seen`` and those on which it was looked for and ``held`` off. ``releases`` is a version specifier
    such as ``<2.15``: on other releases the deviation is not listed. ``promise`` quotes the sentence of the
    implementation's own documentation that is broken or outdated; every grade except a difference needs one. ``script``
    names the standalone file in implementations/findings/NAME that shows it: it prints what is wrong, and exits 1 until
    it is fixed.
    """

    grade: Grade
    reason: str
    link: str
    seen: tuple[str, ...]
    held: tuple[str, ...] = ()
    releases: str = ""
    promise: str = ""
    script: str = ""

    def __post_init__(self) -> None:
        if self.grade is Grade.UNCLAIMED:
            raise ValueError(f"{self.grade.words}: runs find this; nothing of it is listed as a deviation")
        if self.grade.quotes:
            _require(self.promise, f"{self.grade.words}: quote in promise= the sentence that says otherwise")
        elif self.promise:
            raise ValueError(f"{self.grade.words}: nothing is promised, but promise= quotes {self.promise!r}")

    @property
    def checked(self) -> tuple[str, ...]:
        """The versions that were checked."""
        return (*self.seen, *self.held)

    @property
    def versions(self) -> str:
        """The versions that were checked, in words."""
        held = f"; held on {in_a_row(self.held)}" if self.held else ""
        return f"seen on {in_a_row(self.seen)}{held}"

    def __str__(self) -> str:
        return f"{self.reason} ({self.link}; {self.versions})"


def in_a_row(names: Sequence[str]) -> str:
    """Names in words: a, b and c."""
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last


@dataclass(frozen=True)
class Deviation:
    """Something that an implementation is known not to keep: clauses, or properties of some ``functions``.

    ``ids`` are those of the tests that show it, without Function and device (``FN-12``, ``FN-12/kwargs``), and
    ``shows`` is what their finding looks like. Any other finding of these tests is a failure.
    """

    ids: tuple[str, ...]
    shows: tuple[Shown, ...]
    cause: Cause
    functions: tuple[str, ...] = ()
    frequency: Frequency = Frequency.USUALLY

    def __post_init__(self) -> None:
        for name in ("ids", "shows", "functions"):
            if not isinstance(getattr(self, name), tuple):
                raise TypeError(f"{name} of a Deviation is a tuple: write {name}=({getattr(self, name)!r},)")

    def names(self, id: str, function: str = "") -> bool:
        """Whether the deviation is about this test, of this Function."""
        return id in self.ids and function in (self.functions or ("",))

    def covers(self, failure: Failure) -> bool:
        """Whether the failure is this deviation."""
        return any(shown.covers(failure) for shown in self.shows)

    def may_hang(self, call: str) -> bool:
        """Whether the printed call is listed not to end."""
        return any(isinstance(shown, Hung) and shown.may_end(call) for shown in self.shows)


def release_of(version: str) -> str:
    """The release that a version belongs to: 2.13.0 for 2.13.0+cpu, and for the fork 2.13.0+mine."""
    try:
        return Version(version).base_version
    except InvalidVersion:
        return version


def by_release(versions: Iterable[str]) -> tuple[str, ...]:
    """Each of these versions once, the oldest first."""
    try:
        return tuple(sorted(set(versions), key=Version))
    except InvalidVersion:
        return tuple(sorted(set(versions)))


def named_by(deviations: Sequence[Deviation], id: str, function: str = "") -> tuple[Deviation, ...]:
    """The deviations that are about this test, of this Function."""
    return tuple(d for d in deviations if d.names(id, function))
