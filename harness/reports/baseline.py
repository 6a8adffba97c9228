"""Baselines: the outcome of each test id, in a small text file that is reviewed like code."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from autograd_conformance.harness.outcomes import MISSING, OUTCOMES, UsageProblem
from autograd_conformance.harness.reports import asked, ndjson
from autograd_conformance.harness.reports.asked import Asked

DEFAULT_PATH = "autograd-conformance.baseline"

# The version of the format.
FORMAT = "2"
# The first one says neither how much was asked nor which sources the suite had.
_FIRST = "1"

# The first line names the format. The next ones are the parameters of the run; `version` is for readers only.
_MAGIC = "autograd-conformance baseline"

# The version of the suite and the digests of its sources.
_SUITE = "suite"
# What a line has, from left to right.
_COLUMNS = "columns"
_COLUMNS_ARE = "test id, outcome, examples/checks and dtypes asked, the fault"

_LINE = re.compile(
    rf"(?P<id>\S+(?: \S+)*?)  (?P<outcome>{'|'.join(OUTCOMES)})"
    r"(?:  (?P<asked>\d+/\d+(?: \S+)*))?(?:  (?P<what>\S+(?: \S+)*))?"
)
_HEAD = re.compile(r"# (?P<name>[a-z -]+): (?P<value>.*)")
# The type of an exception in an error's text, and parts of a message that vary from run to run.
_RAISED = re.compile(r"(?P<type>[A-Za-z_]\w*(?:Error|Exception|Interrupt|Exit))\b")
_VARYING = re.compile(r"0x[0-9a-fA-F]+|/\S+|[0-9.:]*[0-9]")
_LONGEST = 80

# Precedes the number of refused examples of a test id that holds.
_REFUSALS = "refused: "

_CONFLICT = re.compile(r"(<{7}|={7}|>{7}|\|{7})( |$)")


class Entry(NamedTuple):
    """The outcome of a test id; ``what`` identifies the fault, and ``asked`` says how much was asked, if known."""

    outcome: str
    what: str = ""
    asked: Asked | None = None

    @property
    def refused(self) -> int:
        """The number of refused examples of a test id that holds."""
        return int(self.what.removeprefix(_REFUSALS)) if self.what.startswith(_REFUSALS) else 0

    def __str__(self) -> str:
        return f"{self.outcome} ({self.what})" if self.what else self.outcome


@dataclass(frozen=True)
class Baseline:
    """The outcome of every test id of a run: its parameters, the implementation's version, and the entries by id.

    ``claims`` is what the adapter claimed to support, and ``sources`` has the version of the suite and the digests of
    its sources. Both are empty for a baseline of the first format, which does not say it.
    """

    parameters: Mapping[str, str]
    version: str
    entries: Mapping[str, Entry]
    claims: frozenset[str] = frozenset()
    sources: Mapping[str, str] = field(default_factory=dict)


def of_report(path: Path, lines: list[ndjson.Line]) -> Baseline:
    """The baseline of a report. Raises UsageProblem for an incomplete or damaged one."""
    flaw = ndjson.flaw(lines)
    if flaw:
        raise UsageProblem(f"{path} is not the report of a complete run: {flaw}")
    header = lines[0]
    if header["shard"]:
        raise UsageProblem(
            f"{path} is shard {header['shard']} of a run; merge all shards first: "
            "autograd-conformance merge SHARD... -o FILE"
        )
    entries = {line["id"]: _entry(line) for line in lines[1:-1]}
    return Baseline(
        parameters(header), _plain(header["implementation"]["version"]), entries, asked.claims(header), sources(header)
    )


def parameters(header: ndjson.Line) -> dict[str, str]:
    """The parameters that must be equal in two runs that are compared."""
    options = header["options"]
    found = {
        "implementation": header["implementation"]["name"],
        "profile": header["profile"],
        "examples": str(header["examples"]),
        "seed": str(header["seed"]),
        "dtype": header["dtype"] or "all",
        **{name: options[name] or "all" for name in ("device", "functions", "properties", "tests", "pytest")},
        # Another release of Hypothesis draws other examples.
        "hypothesis": header["packages"]["hypothesis"],
    }
    return {name: _plain(value) for name, value in found.items()}


def sources(header: ndjson.Line) -> dict[str, str]:
    """The version of the suite and the digests of its sources."""
    return {"version": _plain(header["suite"]["version"]).replace(" ", ""), **header["suite"]["sources"]}


def _entry(line: ndjson.Line) -> Entry:
    failure = line.get("failure", {})
    if not failure:
        what = f"{_REFUSALS}{line['excused']}" if "excused" in line else ""
        what = _plain(line["reason"]) if line["outcome"] == MISSING else what
        return Entry(line["outcome"], what, asked.of_line(line))
    component = failure.get("component", {})
    # Without the place in the tensor, which may differ between machines.
    what = component["what"] if "index" in component else failure.get("what", "")
    raised = _RAISED.match(failure.get("got", ""))
    kind = failure.get("raised", {}).get("type") or (raised["type"] if raised else failure.get("type", ""))
    first = next(iter(failure.get("message", "").splitlines()), "")
    fault = _plain(": ".join(filter(None, (what, kind, _VARYING.sub("*", first)[:_LONGEST]))))
    return Entry(line["outcome"], fault, asked.of_line(line))


def _plain(text: str) -> str:
    return " ".join(text.split())


def text(baseline: Baseline) -> str:
    """The file's text. Raises UsageProblem for a test id that does not fit on a line."""
    for id in baseline.entries:
        if _plain(id) != id or id.startswith("#"):
            raise UsageProblem(
                f"a baseline cannot hold the test id {id!r}: it has unusual white space or starts with #"
            )
    head = {
        _MAGIC: FORMAT,
        _SUITE: " ".join(f"{room}={digest}" for room, digest in baseline.sources.items()),
        **baseline.parameters,
        "version": baseline.version,
        "claims": " ".join(sorted(baseline.claims)),
        "ids": str(len(baseline.entries)),
        _COLUMNS: _COLUMNS_ARE,
    }
    rows = [_row(id, entry) for id, entry in sorted(baseline.entries.items())]
    lines = [*(f"# {name}: {value}" for name, value in head.items()), *rows, f"# end {len(rows)}"]
    return "".join(f"{line}\n" for line in [*lines[: len(head)], f"# digest: {_digest(lines)}", *lines[len(head) :]])


def _row(id: str, entry: Entry) -> str:
    how_much = asked.text(entry.asked) if entry.asked is not None else ""
    return "  ".join(filter(None, (id, entry.outcome, how_much, entry.what)))


def _digest(lines: Iterable[str]) -> str:
    return ndjson.digest(f"{line}\n" for line in lines if not line.startswith("# digest: "))


def read(path: Path) -> Baseline:
    """The baseline at ``path``. Raises UsageProblem for a damaged or other file."""
    try:
        content = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as problem:
        reason = getattr(problem, "strerror", None) or "it is not text"
        raise UsageProblem(f"the baseline {path} cannot be read: {reason}; make one with {_making()}") from None
    lines = content.removesuffix("\n").split("\n")
    wrong = next(_problems(path, lines), None)
    if wrong is not None:
        raise UsageProblem(wrong)
    head = _head(lines)
    entries = {m["id"]: _read_entry(m) for line in lines if (m := _LINE.fullmatch(line))}
    own = (_MAGIC, _SUITE, "version", "claims", "ids", _COLUMNS, "digest")
    found = {name: value for name, value in head.items() if name not in own}
    made_with = dict(each.split("=", 1) for each in head[_SUITE].split()) if head[_MAGIC] == FORMAT else {}
    return Baseline(found, head["version"], entries, frozenset(head.get("claims", "").split()), made_with)


def _read_entry(row: re.Match[str]) -> Entry:
    return Entry(row["outcome"], row["what"] or "", asked.parsed(row["asked"] or ""))


def is_one(path: Path) -> bool:
    """Whether ``path`` is a baseline, damaged or not."""
    try:
        return f"# {_MAGIC}: " in path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False


def is_shipped(path: Path) -> bool:
    """Whether ``path`` is a baseline that comes with the suite, in this or another copy of it."""
    return path.resolve().parent.parts[-2:] == ("implementations", "baselines")


def _making(path: str = "REPORT") -> str:
    return f"autograd-conformance accept {path} -o FILE"


def _head(lines: Iterable[str]) -> dict[str, str]:
    return {m["name"]: m["value"] for line in lines if (m := _HEAD.fullmatch(line))}


def _problems(path: Path, lines: list[str]) -> Iterator[str]:
    """What is wrong with the lines of a baseline, the most helpful message first."""
    again = f"write it again with: {_making()}"
    if not any(lines):
        yield f"the baseline {path} is empty; make one with {_making()}"
    if lines[0].startswith("{"):
        yield f"{path} is a report, not a baseline; make a baseline from it with {_making(str(path))}"
    for number, line in enumerate(lines, 1):
        if _CONFLICT.match(line):
            yield f"the baseline {path} has a merge conflict in line {number}; {again}"
    head = _head(lines)
    if not lines[0].startswith(f"# {_MAGIC}: "):
        yield f"{path} is not a baseline: its first line is {lines[0][:60]!r}; make one with {_making()}"
    if head[_MAGIC] not in (_FIRST, FORMAT):
        yield f"the baseline {path} has format {head[_MAGIC]}, but this version of the suite reads {FORMAT}; {again}"
    rows = [line for line in lines if not line.startswith("#")]
    if lines[-1] != f"# end {len(rows)}":
        yield f"the baseline {path} is truncated: it does not end with the line '# end {len(rows)}'; {again}"
    for line in rows:
        if _LINE.fullmatch(line) is None:
            yield f"the baseline {path} has a line that cannot be read: {line[:80]!r}; {again}"
    ids = [match["id"] for line in rows if (match := _LINE.fullmatch(line))]
    for one, other in pairwise(ids):
        if one >= other:
            yield f"the baseline {path} is not sorted or has an id twice: {other} follows {one}; {again}"
    said = {"version"} if head[_MAGIC] == _FIRST else {"version", "claims", _SUITE}
    whole = said <= head.keys() and head.get("ids") == str(len(rows))
    if not whole or head.get("digest") != _digest(lines):
        yield f"the baseline {path} was changed by hand: its digest does not match; {again}"
