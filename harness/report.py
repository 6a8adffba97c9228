"""The report: one NDJSON line for the run, one for every test id, one for the end. See report.schema.json."""

from __future__ import annotations

import hashlib
import json
import math
import os
import platform
import traceback
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from datetime import datetime, timezone
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from hypothesis.errors import Unsatisfiable

from autograd_conformance.harness.blackbox import MACHINERY, LastWords
from autograd_conformance.harness.clauses import ClauseSubject
from autograd_conformance.harness.outcomes import OUTCOMES, SHORTFALLS, Broken, UsageProblem, Vacuous, message_of, named
from autograd_conformance.harness.script import script_for
from autograd_conformance.harness.subject import Subject
from autograd_conformance.implementations.protocol import Deviation
from autograd_conformance.strategies.calls import parse

if TYPE_CHECKING:
    from autograd_conformance.harness.selection import Selection

SCHEMA = 2
DEFAULT_PATH = "autograd-conformance.ndjson"

# Lines of a traceback that a result keeps.
_LINES = 16

# Characters of a refusal that a result keeps.
_EXCUSE = 300

# How the reason of what is vacuous starts where nothing but refusals came.
REFUSED = "refused in every example"

Line = dict[str, Any]

# What reports of every schema have in their header.
_IN_EVERY_HEADER = ("schema", "suite", "implementation", "devices", "profile", "examples", "seed", "dtype", "started")

# What a test is about.
Examined = Subject | ClauseSubject


def result_line(subject: Examined, error: BaseException | None, needs: frozenset[str] = frozenset()) -> Line:
    """The line of a test id that ended with that exception; ``needs`` lists the capabilities that it used."""
    line = {**subject.key, **_outcome(subject, error, needs), **_figures(subject)}
    line.update(_as_listed(subject.deviation, line))
    if "failure" in line and subject.record.drawn is not None:
        line["failure"]["drawn"] = asdict(subject.record.drawn)
    if line["outcome"] in SHORTFALLS and "failure" in line:
        line["failure"].update(subject.script(line["failure"]))
    return line


def died_line(last: LastWords, selection: Selection) -> Line:
    """The line of a test id whose process hung or died."""
    failure: Line = {"type": last.kind, "message": last.cause, "traceback": last.frames[:_LINES]}
    if last.call and "function" in last.key:
        failure["call"] = last.call
        function = next(f for f in selection.functions if f.name == last.key["function"])
        script, problem = script_for(selection.implementation, function, test_of(last.key), failure)
        failure.update({"script": script} if script else {"no_script": problem})
    elif last.call:
        failure["chosen"] = last.call
    if last.drawn is not None:
        failure["drawn"] = last.drawn
    nothing = dict.fromkeys(("examples", "checks", "inconclusive", "refused", "worst", "seconds"), 0)
    line = {**last.key, "outcome": "error", "failure": failure, **nothing}
    which = (test_of(last.key), last.key.get("function", ""))
    deviations = selection.implementation.deviations
    listed = [d for d in deviations if d.names(*which)][:1]
    listed += [d for d in deviations if d.without_elements and _without_elements(last.call)]
    return {**line, **next(filter(None, (_as_listed(d, line) for d in listed)), {})}


def _without_elements(text: str) -> bool:
    """Whether a printed call has a tensor without elements; whatever else it is has none."""
    try:
        return any(0 in tensor.shape for tensor in parse(text).tensors)
    except ValueError:
        return False


def claim_of(line: Line) -> str:
    """The property or clause that a result line is about."""
    return str(line["property"] if "property" in line else line["clause"])


def test_of(line: Line) -> str:
    """The property or clause of a result line, with the variant of its test."""
    return named(claim_of(line), line.get("variant", ""))


def _as_listed(listed: Deviation | None, line: Line) -> Line:
    """The outcome of a listed deviation, with its reason; nothing for what is not listed."""
    if listed is None or line["outcome"] not in _LISTED:
        return {}
    if listed.sometimes and _LISTED[line["outcome"]] == "fixed":
        return {}
    failure = line.get("failure", {"what": line["reason"]} if line["outcome"] == "vacuous" else None)
    if failure is not None and not listed.covers(
        failure.get("what", failure.get("message", "")), failure.get("got", "")
    ):
        return {}
    return {"outcome": _LISTED[line["outcome"]], "reason": f"{listed.reason} ({listed.link}; {listed.versions})"}


_LISTED = {"fail": "known", "error": "known", "vacuous": "known", "pass": "fixed", "emulated": "fixed"}


def _figures(subject: Examined) -> Line:
    record = subject.record
    by_dtype = {dtype: _figure(ratio) for dtype, ratio in sorted(record.worst_by_dtype.items())}
    return {
        "examples": record.examples,
        "checks": record.checks,
        "inconclusive": record.inconclusive,
        "refused": record.refused,
        **({"excused": record.excused, "excuse": record.excuse[:_EXCUSE]} if record.excused else {}),
        "worst": _figure(record.worst),
        **({"worst_by_dtype": by_dtype} if by_dtype else {}),
        "seconds": round(subject.cpu_seconds, 3),
    }


def _figure(ratio: float) -> float:
    return float(f"{ratio:.3g}")


def _outcome(subject: Examined, error: BaseException | None, needs: frozenset[str]) -> Line:
    if error is None:
        helped = sorted((needs | subject.needs) & subject.implementation.emulated)
        if helped:
            return {"outcome": "emulated", "reason": f"the adapter supplies {', '.join(helped)}"}
        if subject.record.refused_throughout:
            # It claims what the test needs. That it need not fail is not that it holds.
            return {"outcome": "vacuous", "reason": f"{REFUSED}: {subject.record.excuse[:_EXCUSE]}"}
        return {"outcome": "pass"}
    if isinstance(error, pytest.skip.Exception):
        kind, _, reason = str(error.msg).partition(": ")
        if kind not in OUTCOMES:
            kind, reason = "skip", str(error.msg)
        return {"outcome": kind, "reason": reason}
    if isinstance(error, Vacuous | Unsatisfiable):
        return {"outcome": "vacuous", "reason": str(error)}
    leaves = list(_leaves(error))
    broken = [leaf for leaf in leaves if isinstance(leaf, Broken)]
    if broken and len(broken) == len(leaves):
        flaky = {"flaky": True} if broken[0] is not error else {}
        return {"outcome": "fail", "failure": {**_json(broken[0].finding.as_json()), **flaky}}
    failure = {"type": type(error).__name__, "message": message_of(error), "traceback": _last_lines(error)}
    if subject.record.call:
        failure["call" if isinstance(subject, Subject) else "chosen"] = subject.record.call
    return {"outcome": "error", "failure": failure}


def _leaves(error: BaseException) -> Iterator[BaseException]:
    """The exceptions in a group: Hypothesis groups them when a failure does not repeat itself."""
    inner = getattr(error, "exceptions", None)
    if inner is None:
        yield error
    for each in inner or ():
        yield from _leaves(each)


def _last_lines(error: BaseException) -> list[str]:
    """The end of the traceback, without the frames of this suite's machinery."""
    frames = traceback.extract_tb(error.__traceback__)
    telling = [frame for frame in frames if not any(part in frame.filename for part in MACHINERY)]
    text = "".join(traceback.StackSummary.from_list(telling).format())
    return [line for line in text.splitlines() if line.strip("^~ ")][-_LINES:]


def _json(value: Any) -> Any:
    """The value with what JSON cannot say (infinity, NaN, NumPy's scalars) put in its terms."""
    if isinstance(value, Mapping):
        return {str(key): _json(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_json(each) for each in value]
    if isinstance(value, str | bool | int | None):
        return value
    return float(value) if math.isfinite(value) else None


def header(selection: Selection, expected: int | None) -> Line:
    """The first line: what is run, on what."""
    found = selection.implementation.environment()
    return {
        "kind": "header",
        "schema": SCHEMA,
        "suite": {"name": "autograd-conformance", "version": version_of("autograd-conformance")},
        "implementation": {
            "name": selection.implementation.name,
            "named": selection.named,
            "version": found.version,
            "location": found.location,
            **({"fork": asdict(selection.fork)} if selection.fork else {}),
        },
        "devices": list(selection.all_devices),
        "profile": selection.profile.name,
        "examples": selection.examples,
        "seed": selection.seed,
        "replay": selection.replay,
        "corpus": selection.corpus,
        "functions": [function.name for function in selection.functions],
        "properties": list(selection.properties),
        "clauses": list(selection.clauses),
        "dtype": selection.dtype,
        "options": selection.options,
        "shard": str(selection.shard) if selection.shard else None,
        "balance": selection.shard.balance if selection.shard else None,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": {name: version_of(name) for name in _PACKAGES},
        "started": now(),
        "expected": expected,
    }


_PACKAGES = ("hypothesis", "numpy", "pytest")


def versions(selection: Selection) -> dict[str, str]:
    """What has to be the same in all processes of a run."""
    own = {selection.implementation.name: str(selection.implementation.environment().version)}
    return {**{name: version_of(name) for name in ("autograd-conformance", *_PACKAGES)}, **own}


def footer(lines: Sequence[Line], whole: Line, seconds: float, costs: Sequence[Line] = ()) -> Line:
    """The last line of a report of which nothing is missing, behind these; ``whole`` is the `census` of all shards."""
    results = lines[1:]
    counts = Counter(line["outcome"] for line in results)
    found = {
        "kind": "footer",
        "counts": {name: counts[name] for name in OUTCOMES if counts[name]},
        "verdict": "falls short" if SHORTFALLS & counts.keys() else "holds",
        "examples": sum(line["examples"] for line in results),
        "all": whole,
        "digest": digest(comparable(results)),
        "seconds": round(seconds, 1),
        **({"costs": list(costs)} if costs else {}),
        "finished": now(),
    }
    return {**found, "checksum": digest(map(_text, (*lines, found)))}


def census(ids: Iterable[str]) -> Line:
    """How many test ids these are, and which, in short."""
    found = sorted(ids)
    return {"count": len(found), "digest": digest(f"{id}\n" for id in found)}


def digest(texts: Iterable[str]) -> str:
    """A number that tells these texts from others."""
    found = hashlib.sha256()
    for text in texts:
        found.update(_bytes(text))
    return found.hexdigest()


def comparable(results: Iterable[Line]) -> list[str]:
    """What two runs of the same thing have in common, whatever the machine, the workers and the shards."""
    return [_text(_compared(line)) for line in sorted(results, key=lambda line: line["id"])]


def _compared(line: Line) -> Line:
    """A result without times, paths, addresses, stacks, and numbers whose last digits depend on the processor."""
    failure = {key: value for key, value in line.get("failure", {}).items() if key in _OF_FAILURE}
    return {**{key: line[key] for key in _OF_RESULT}, **({"failure": failure} if failure else {})}


_OF_RESULT = ("id", "outcome", "examples", "checks", "refused")
_OF_FAILURE = ("what", "type", "call", "chosen", "flaky")


class Complete(NamedTuple):
    """Whether a report is all that its run had to say; if not, ``reason`` says why."""

    reason: str = ""

    def __bool__(self) -> bool:
        return not self.reason


def complete(lines: Sequence[Line]) -> Complete:
    """Whether nothing of a report is missing, doubled or changed since it was written."""
    return Complete(next(_flaws(lines), ""))


def _flaws(lines: Sequence[Line]) -> Iterator[str]:
    kinds = [line.get("kind") for line in lines]
    if kinds.count("header") != 1:
        yield f"it has {kinds.count('header')} headers: several runs are in it"
    if lines[0].get("schema") != SCHEMA:
        yield f"it has format {lines[0].get('schema')}, of another version of this suite, which writes {SCHEMA}"
    ids = Counter(line.get("id") for line in lines if line.get("kind") == "result")
    if "footer" not in kinds:
        expected = lines[0].get("expected")
        missing = "all" if expected is None else expected - ids.total()
        yield f"the run did not finish: {missing} of its test ids have no result"
    if kinds.index("footer") != len(kinds) - 1:
        yield "something follows its footer"
    if len(ids) != ids.total():
        yield f"{ids.most_common(1)[0][0]} is in it twice"
    if ids.total() != lines[0].get("expected") or ids.total() != len(lines) - 2:
        yield f"it has {ids.total()} results of {lines[0].get('expected')}"
    summed = {key: value for key, value in lines[-1].items() if key != "checksum"}
    if lines[-1].get("checksum") != digest(map(_text, (*lines[:-1], summed))):
        yield "it was changed after the run wrote it"


def version_of(package: str) -> str:
    """The installed version, ``unknown`` for a checkout that is not installed."""
    with suppress(metadata.PackageNotFoundError):
        return metadata.version(package)
    return "unknown"


def now() -> str:
    """The time, in UTC."""
    return datetime.now(timezone.utc).isoformat(timespec="seconds")


class ReportFile:
    """A report being written: every line is on disk before the next test ends."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            # Without a buffer, so that what could not be written is not tried again at the end.
            self._file = path.open("wb", buffering=0)
        except OSError as problem:
            reason = problem.strerror or problem
            raise UsageProblem(f"the report cannot be written to {path}: {reason}; choose with --report FILE") from None

    def write(self, line: Line) -> None:
        """Append a line and hand it to the operating system. Raises OSError."""
        rest = _bytes(_text(line))
        while rest:
            rest = rest[self._file.write(rest) :]

    def close(self) -> None:
        """Close the file; what was written stays."""
        self._file.close()


def _text(line: Line) -> str:
    return json.dumps(line, allow_nan=False, ensure_ascii=False) + "\n"


def _bytes(text: str) -> bytes:
    # Half a surrogate pair, of which a message may be made, is written as the escape that JSON has for it.
    return text.encode("utf-8", "backslashreplace")


def check_path(path: Path, *, what: str = "the report", option: str = "--report") -> None:
    """Raise UsageProblem for a path to which no file can be written, without touching what is there."""
    target = path if path.exists() else path.parent
    if not target.exists():
        reason = f"there is no folder {target}"
    elif path.is_dir():
        reason = "it is a folder"
    elif not os.access(target, os.W_OK):
        reason = "permission denied"
    else:
        return
    raise UsageProblem(f"{what} cannot be written to {path}: {reason}; choose a file with {option} FILE")


def read(path: Path) -> list[Line]:
    """The lines of a report, complete or not. Raises UsageProblem for anything else."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        reason = getattr(problem, "strerror", None) or "it is not text"
        raise UsageProblem(f"the report {path} cannot be read: {reason}") from None
    # A process that is killed may leave half a line at the end.
    *whole, _ = text.split("\n")
    try:
        lines = [json.loads(line) for line in whole]
    except ValueError:
        raise UsageProblem(f"{path} is not a report: it has a line that is not JSON") from None
    if not lines or not all(isinstance(line, dict) for line in lines) or lines[0].get("kind") != "header":
        raise UsageProblem(f"{path} is not a report: it does not start with a header line")
    absent = [name for name in _IN_EVERY_HEADER if name not in lines[0]]
    if absent:
        raise UsageProblem(f"{path} is not a report: its header lacks {', '.join(absent)}")
    return lines
