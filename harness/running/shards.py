"""Shards: a run split by test id over several machines, and the merging of their reports."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

from autograd_conformance.harness.outcomes import UsageProblem
from autograd_conformance.harness.provenance import identity
from autograd_conformance.harness.reports import ndjson

# Seconds that a test takes in addition to those in its report.
_OVERHEAD = 0.01


@dataclass(frozen=True)
class Shard:
    """Part ``index`` of ``count`` parts of a run, from 1; ``seconds`` has durations of test ids in an earlier run."""

    index: int
    count: int
    seconds: Mapping[str, float] = field(default_factory=dict, repr=False)

    def __str__(self) -> str:
        return f"{self.index}/{self.count}"

    @property
    def balance(self) -> str | None:
        """A digest of the durations; None without any."""
        rows = (f"{id} {seconds!r}\n" for id, seconds in sorted(self.seconds.items()))
        return ndjson.digest(rows) if self.seconds else None

    def mine(self, ids: Iterable[str]) -> set[str]:
        """The test ids of this shard, of those of the complete run."""
        given = set(ids)
        balanced = _balanced({id: self.seconds[id] for id in given & self.seconds.keys()}, self.count)
        return {id for id in given if balanced.get(id, _by_name(id, self.count)) == self.index}


def _by_name(id: str, count: int) -> int:
    """The shard of a test id; it does not depend on the other ids."""
    return int.from_bytes(hashlib.sha256(id.encode()).digest()[:8], "big") % count + 1


def _balanced(seconds: Mapping[str, float], count: int) -> dict[str, int]:
    """The shard of each test id: the longest first, each to the shard with the least work."""
    load = dict.fromkeys(range(1, count + 1), 0.0)
    found: dict[str, int] = {}
    for id in sorted(seconds, key=lambda id: (-seconds[id], id)):
        found[id] = min(load, key=lambda shard: (load[shard], shard))
        load[found[id]] += seconds[id] + _OVERHEAD
    return found


def parsed(text: str | None, balance: str | None) -> Shard | None:
    """The shard that ``--shard`` names, if given. Raises UsageProblem, also for ``--balance`` without ``--shard``."""
    if text is None:
        if balance is not None:
            raise UsageProblem(f"--balance {balance} needs --shard I/N")
        return None
    parts = re.fullmatch(r"(\d{1,4})/(\d{1,4})", text)
    if parts is None or not 1 <= int(parts[1]) <= int(parts[2]):
        raise UsageProblem(f"--shard {text!r} is not a shard; give I/N with I from 1 to N, as in --shard 2/7")
    return Shard(int(parts[1]), int(parts[2]))


def seconds(path: Path, name: str, profile: str) -> dict[str, float]:
    """The seconds of each test id in an earlier run. Raises UsageProblem for another implementation or profile."""
    header, *lines = ndjson.read(path)
    for what, found, wanted in (
        ("implementation", header["implementation"]["name"], name),
        ("profile", header["profile"], profile),
    ):
        if found != wanted:
            raise UsageProblem(f"{path} cannot balance this run: its {what} is {found}, but this run has {wanted}")
    taken = {line["id"]: float(line["seconds"]) for line in lines if line["kind"] == "result"}
    if not taken:
        raise UsageProblem(f"{path} cannot balance this run: it has no results")
    return taken


# Shards of one run start within this time. Those of the next night start later.
APART = timedelta(hours=12)

# The fields of the header that are equal in all shards of a run.
_SAME = (
    "devices", "profile", "examples", "seed", "counterexamples", "functions", "properties", "clauses",
    "dtype", "options", "packages", "balance",
)  # fmt: skip

_Reports = Mapping[Path, Sequence[ndjson.Line]]


def merged(reports: _Reports, run_id: str | None = None) -> list[ndjson.Line]:
    """The report of a run, merged from those of its shards. Raises UsageProblem unless all are there and complete.

    All must be of ``run_id``, if it is given.
    """
    for path, lines in reports.items():
        found = lines[0]["run"]["id"]
        if run_id is not None and found != run_id:
            raise UsageProblem(
                f"{path} is not of the run {run_id!r}: its run id is {found!r}; give the reports of that run"
            )
        _verify_complete(path, lines)
        if lines[0]["shard"] is None:
            raise UsageProblem(f"{path} is not a shard: it is the report of a run without --shard")
    _verify_alike(reports)
    _verify_one_day(reports)
    _verify_all_there(reports)
    results = [_without_link(line) for lines in reports.values() for line in lines[1:-1]]
    _verify_each_once(reports, results)
    footers = [lines[-1] for lines in reports.values()]
    header = together([lines[0] for lines in reports.values()])
    found = [{**header, "expected": len(results), "shard": None, "balance": None}, *results]
    return [*found, ndjson.footer(found, footers[0]["all"], max(footer["seconds"] for footer in footers))]


def without_test(reports: _Reports) -> list[str]:
    """The ids of kept counterexamples that have a test in no shard."""
    kept = {id for lines in reports.values() for id in lines[0].get("kept", ())}
    return sorted(kept - {line["id"] for lines in reports.values() for line in lines[1:-1]})


def _without_link(line: ndjson.Line) -> ndjson.Line:
    """A result without its link to the lines before it, which are others in a merged report."""
    return {key: value for key, value in line.items() if key != "link"}


def _verify_complete(path: Path, lines: Sequence[ndjson.Line]) -> None:
    """Raise UsageProblem for a report without an end, or one that was changed."""
    flaw = ndjson.flaw(lines)
    if flaw:
        raise UsageProblem(f"{path} is not a complete report: {flaw}")


def _verify_alike(reports: _Reports) -> None:
    (first, theirs), *others = [(path, _of_shard(lines)) for path, lines in reports.items()]
    for path, mine in others:
        verify_alike((first, theirs), (path, mine))


def verify_alike(one: tuple[Path, ndjson.Line], other: tuple[Path, ndjson.Line]) -> None:
    """Raise UsageProblem unless two reports have the same parameters."""
    (first, theirs), (second, mine) = one, other
    for what in {**theirs, **mine}:
        if mine.get(what) != theirs.get(what):
            raise UsageProblem(
                f"{first} and {second} are not of the same run: {what} is {short(theirs.get(what))} in the first "
                f"and {short(mine.get(what))} in the second"
            )


def _verify_one_day(reports: _Reports) -> None:
    """Raise UsageProblem for shards that started too far apart: a run id, if there is any, may be used again."""
    began = {path: datetime.fromisoformat(lines[0]["started"]) for path, lines in reports.items()}
    first, last = (pick(began, key=lambda path: began[path]) for pick in (min, max))
    if began[last] - began[first] > APART:
        raise UsageProblem(
            f"{first} and {last} are not of the same run: the first started at {began[first]:%Y-%m-%d %H:%M}, the "
            f"second at {began[last]:%Y-%m-%d %H:%M}; run the older shards again, with the same --run-id"
        )


def _of_shard(lines: Sequence[ndjson.Line]) -> ndjson.Line:
    number = {"number of shards": lines[0]["shard"].partition("/")[2]}
    return {**parameters(lines[0]), **number, "choice of test ids": lines[-1]["all"]}


def parameters(head: ndjson.Line) -> ndjson.Line:
    """The parameters that are equal in all parts of a run, by name."""
    run = {"run id": head["run"]["id"]}
    implementation = {what: head["implementation"].get(what) for what in ("name", "version", "fork", "build")}
    same = {what: head[what] for what in _SAME}
    return {**run, **implementation, **_suite_of(head), **_imports_of(head), **same}


def _imports_of(head: ndjson.Line) -> ndjson.Line:
    """The digests of what was imported that is neither the suite nor installed, by name."""
    return {
        f"{'library' if identity.is_native(name) else 'module'} {name}": digest
        for name, digest in head.get("imports", {}).items()
    }


def _suite_of(head: ndjson.Line) -> ndjson.Line:
    """The version and the sources of the suite, by name."""
    sources = {f"suite's {room}": digest for room, digest in head["suite"]["sources"].items()}
    return {"suite's version": head["suite"]["version"], **sources}


def short(value: object) -> str:
    """The value as a text that fits into a sentence."""
    text = str(value)
    return text if len(text) <= 80 else f"{text[:80]} ..."


def _verify_all_there(reports: _Reports) -> None:
    found: dict[str, Path] = {}
    for path, lines in reports.items():
        other = found.setdefault(lines[0]["shard"], path)
        if other != path:
            raise UsageProblem(f"{other} and {path} are both shard {lines[0]['shard']}")
    count = int(next(iter(found)).partition("/")[2])
    missing = [shard for n in range(1, count + 1) if (shard := f"{n}/{count}") not in found]
    if missing:
        raise UsageProblem(f"there is no report of shard {', '.join(missing)}; give the reports of all {count} shards")


def _verify_each_once(reports: _Reports, results: Sequence[ndjson.Line]) -> None:
    seen: dict[str, Path] = {}
    for path, lines in reports.items():
        for line in lines[1:-1]:
            other = seen.setdefault(line["id"], path)
            if other != path:
                raise UsageProblem(f"{line['id']} is in both {other} and {path}")
    expected = next(iter(reports.values()))[-1]["all"]
    if ndjson.census(seen) != expected:
        raise UsageProblem(f"the shards have {len(results)} test ids, but the run has {expected['count']}")


def together(headers: Sequence[ndjson.Line]) -> ndjson.Line:
    """The header of a run of which these are parts; machines may differ."""
    first = headers[0]
    location = _joined(h["implementation"]["location"] for h in headers)
    machines = {what: _joined(h[what] for h in headers) for what in ("python", "platform")}
    return {
        **first,
        **machines,
        "run": {**headers[-1]["run"], "host": _joined(h["run"]["host"] for h in headers)},
        "implementation": {**first["implementation"], "location": location},
        "started": min(h["started"] for h in headers),
    }


def _joined(texts: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(each for text in texts for each in text.split(", ")))
