"""The format of reports: NDJSON with a header, a line for each test id, and a footer; see report.schema.json."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import datetime, timezone
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

from autograd_conformance.harness.outcomes import FAILING, OUTCOMES, UsageProblem, named
from autograd_conformance.harness.reports import files

SCHEMA = 4
DEFAULT_PATH = "autograd-conformance.ndjson"

# Why a result is vacuous: every example was refused, the checks were not conclusive, or the time was up too early.
REFUSED, UNCHECKED, SLOW = "refused", "unchecked", "slow"

Line = dict[str, Any]

# Hexadecimal digits of a link.
_LINK = 16

# Fields of the header in every version of the format.
_IN_EVERY_HEADER = ("schema", "suite", "implementation", "devices", "profile", "examples", "seed", "dtype", "started")


def claim_of(line: Line) -> str:
    """The property or clause of a result line."""
    return str(line["property"] if "property" in line else line["clause"])


def test_of(line: Line) -> str:
    """The property or clause of a result line, with the variant of its test."""
    return named(claim_of(line), line.get("variant", ""))


def footer(lines: Sequence[Line], all_ids: Line, seconds: float) -> Line:
    """The last line of a complete report with these lines; ``all_ids`` is the `census` of all shards."""
    results = lines[1:]
    counts = Counter(line["outcome"] for line in results)
    found = {
        "kind": "footer",
        "counts": {name: counts[name] for name in OUTCOMES if counts[name]},
        "verdict": "fails" if FAILING & counts.keys() else "holds",
        "examples": sum(line["examples"] for line in results),
        "all": all_ids,
        "digest": digest(comparable(results)),
        "seconds": round(seconds, 1),
        "finished": now(),
    }
    return {**found, "checksum": digest(map(_text, (*lines, found)))}


def census(ids: Iterable[str]) -> Line:
    """The number and the digest of test ids."""
    found = sorted(ids)
    return {"count": len(found), "digest": digest(f"{id}\n" for id in found)}


def digest(texts: Iterable[str]) -> str:
    """The SHA-256 of the texts, as hexadecimal digits."""
    found = hashlib.sha256()
    for text in texts:
        found.update(_bytes(text))
    return found.hexdigest()


def comparable(results: Iterable[Line]) -> list[str]:
    """The part of the results that does not depend on the machine, the workers and the shards, as text."""
    return [_text(_compared(line)) for line in sorted(results, key=lambda line: line["id"])]


def _compared(line: Line) -> Line:
    """A result without times, paths, addresses, stacks, and numbers that depend on the processor."""
    failure = {key: value for key, value in line.get("failure", {}).items() if key in _OF_FAILURE}
    return {**{key: line[key] for key in _OF_RESULT}, **({"failure": failure} if failure else {})}


_OF_RESULT = ("id", "outcome", "examples", "checks", "refused")
_OF_FAILURE = ("what", "type", "call", "chosen", "flaky")


CHANGED = "it was changed after the run wrote it"


class Flaw(NamedTuple):
    """What is missing from a report or wrong with it; ``finished`` says whether its run wrote a footer."""

    reason: str
    finished: bool = True

    def __str__(self) -> str:
        return self.reason if self.finished else f"the run did not finish: {self.reason}"


def flaw(lines: Sequence[Line]) -> Flaw | None:
    """The first line that is missing, doubled or changed since the report was written; None if there is none."""
    return next(_flaws(lines), None)


def _flaws(lines: Sequence[Line]) -> Iterator[Flaw]:
    kinds = [line.get("kind") for line in lines]
    if kinds.count("header") != 1:
        yield Flaw(f"it has {kinds.count('header')} headers: it holds several runs")
    if lines[0].get("schema") != SCHEMA:
        yield Flaw(f"it has format {lines[0].get('schema')}, but this version of the suite reads {SCHEMA}")
    ids = Counter(line.get("id") for line in lines if line.get("kind") == "result")
    expected = lines[0].get("expected")
    if "footer" not in kinds:
        yield Flaw(_unfinished(ids.total(), expected), finished=False)
    if kinds.index("footer") != len(kinds) - 1:
        yield Flaw("there are lines after its footer")
    if len(ids) != ids.total():
        yield Flaw(f"it has {ids.most_common(1)[0][0]} twice")
    if ids.total() != expected:
        yield Flaw(f"it has {ids.total()} results, but its header announces {expected}")
    if ids.total() != len(lines) - 2:
        yield Flaw("it has a line that is not a header, a result or a footer")
    summed = {key: value for key, value in lines[-1].items() if key != "checksum"}
    if lines[-1].get("checksum") != digest(map(_text, (*lines[:-1], summed))):
        yield Flaw(CHANGED)


def _unfinished(done: int, expected: int | None) -> str:
    """What is missing from a report without a footer."""
    if not expected:
        return "it ended before the first test"
    if done < expected:
        return f"{expected - done} of its test ids have no result"
    return "every test id has a result, but its last line is missing"


class Chain:
    """Links each result to the lines before it, so that a change of a report without a footer is seen."""

    def __init__(self, header: Line) -> None:
        self._before = _text(header)

    def linked(self, line: Line) -> Line:
        """The next line, with its link."""
        own = {key: value for key, value in line.items() if key != "link"}
        self._before = digest((self._before, _text(own)))[:_LINK]
        return {**own, "link": self._before}


def is_linked(lines: Sequence[Line]) -> bool:
    """Whether the results of a report are those that its run wrote; the last ones may be missing."""
    chain = Chain(lines[0])
    return all(line.get("kind") == "result" and chain.linked(line) == line for line in lines[1:])


def version_of(package: str) -> str:
    """The installed version, ``unknown`` for a checkout that is not installed."""
    with suppress(metadata.PackageNotFoundError):
        return metadata.version(package)
    return "unknown"


def now() -> str:
    """The time, in UTC."""
    return datetime.now(timezone.utc).isoformat(timespec="seconds")


class ReportFile:
    """A report that is being written: each line goes to the operating system at once.

    With the first line it takes the place of an earlier file. A report without a footer is incomplete.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._file = files.Replacement(path.resolve())
        except OSError as problem:
            raise files.Output(path, files.REPORT).problem(problem.strerror or str(problem)) from None

    @property
    def begun(self) -> bool:
        """Whether there is a first line."""
        return self._file.placed

    def write(self, *lines: Line) -> None:
        """Append lines. Raises OSError."""
        self._file.write(b"".join(_bytes(_text(line)) for line in lines))
        if not self._file.placed:
            self._file.stream()

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def text(lines: Iterable[Line]) -> str:
    """The text of a report with these lines."""
    return _bytes("".join(map(_text, lines))).decode()


def _text(line: Line) -> str:
    return json.dumps(line, allow_nan=False, ensure_ascii=False) + "\n"


def _bytes(text: str) -> bytes:
    # A message may have half a surrogate pair; it is written as a JSON escape.
    return text.encode("utf-8", "backslashreplace")


def read(path: Path) -> list[Line]:
    """The lines of a report, complete or not. Raises UsageProblem for any other file."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        reason = getattr(problem, "strerror", None) or "it is not text"
        advice = "give a file that autograd-conformance run --report FILE has written"
        raise UsageProblem(f"the report {path} cannot be read: {reason}; {advice}") from None
    # A killed process may leave half a line at the end.
    *complete, _ = text.split("\n")
    try:
        lines = [json.loads(line) for line in complete]
    except ValueError:
        raise UsageProblem(f"{path} is not a report: it has a line that is not JSON") from None
    if not lines or not all(isinstance(line, dict) for line in lines) or lines[0].get("kind") != "header":
        raise UsageProblem(f"{path} is not a report: it does not start with a header line")
    absent = [name for name in _IN_EVERY_HEADER if name not in lines[0]]
    if absent:
        raise UsageProblem(f"{path} is not a report: its header lacks {', '.join(absent)}")
    return lines
