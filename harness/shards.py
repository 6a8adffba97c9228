"""Shards: a run split by test id over several machines, and their reports put together again."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from autograd_conformance.harness import report
from autograd_conformance.harness.outcomes import UsageProblem

# Seconds of a test beside those that its report counts.
_OVERHEAD = 0.01


@dataclass(frozen=True)
class Shard:
    """Number ``index`` of the ``count`` parts of a run, from 1; ``seconds`` says how long some test ids took before."""

    index: int
    count: int
    seconds: Mapping[str, float] = field(default_factory=dict, repr=False)

    def __str__(self) -> str:
        return f"{self.index}/{self.count}"

    @property
    def balance(self) -> str | None:
        """What tells one way to balance from another, None without any."""
        told = (f"{id} {seconds!r}\n" for id, seconds in sorted(self.seconds.items()))
        return report.digest(told) if self.seconds else None

    def mine(self, ids: Iterable[str]) -> set[str]:
        """Those of the test ids of the whole run that belong to this shard."""
        given = set(ids)
        planned = _balanced({id: self.seconds[id] for id in given & self.seconds.keys()}, self.count)
        return {id for id in given if planned.get(id, _by_name(id, self.count)) == self.index}


def _by_name(id: str, count: int) -> int:
    """The shard of a test id, whatever other ids there are."""
    return int.from_bytes(hashlib.sha256(id.encode()).digest()[:8], "big") % count + 1


def _balanced(seconds: Mapping[str, float], count: int) -> dict[str, int]:
    """The shard of each test id: the longest first, each to the shard that has least to do."""
    load = dict.fromkeys(range(1, count + 1), 0.0)
    found: dict[str, int] = {}
    for id in sorted(seconds, key=lambda id: (-seconds[id], id)):
        found[id] = min(load, key=lambda shard: (load[shard], shard))
        load[found[id]] += seconds[id] + _OVERHEAD
    return found


def parsed(text: str | None, balance: str | None) -> Shard | None:
    """The shard that ``--shard`` names, None without. Raises UsageProblem, also for ``--balance`` alone."""
    if text is None:
        if balance is not None:
            raise UsageProblem(f"--balance {balance} goes with --shard I/N, which says what to balance")
        return None
    parts = re.fullmatch(r"(\d{1,4})/(\d{1,4})", text)
    if parts is None or not 1 <= int(parts[1]) <= int(parts[2]):
        raise UsageProblem(f"--shard {text} is no shard; give I/N with I from 1 to N, as in --shard 2/7")
    return Shard(int(parts[1]), int(parts[2]))


def seconds(path: Path, name: str, profile: str) -> dict[str, float]:
    """How long each test id took in an earlier run of the implementation. Raises UsageProblem for another's report."""
    header, *lines = report.read(path)
    for what, found, wanted in (
        ("implementation", header["implementation"]["name"], name),
        ("profile", header["profile"], profile),
    ):
        if found != wanted:
            raise UsageProblem(f"{path} cannot balance this run: its {what} is {found}, and this is {wanted}")
    taken = {line["id"]: float(line["seconds"]) for line in lines if line["kind"] == "result"}
    if not taken:
        raise UsageProblem(f"{path} cannot balance anything: it has no results")
    return taken


# What of the headers is the same in all shards of a run.
_SAME = (
    "suite", "devices", "profile", "examples", "seed", "replay", "corpus", "functions", "properties", "clauses",
    "dtype", "options", "packages", "balance",
)  # fmt: skip

_Reports = Mapping[Path, Sequence[report.Line]]


def merged(reports: _Reports) -> list[report.Line]:
    """The report of a run from those of its shards. Raises UsageProblem unless they are just these, and whole."""
    for path, lines in reports.items():
        whole = report.complete(lines)
        if not whole:
            raise UsageProblem(f"{path} is not the report of a whole shard: {whole.reason}")
        if lines[0]["shard"] is None:
            raise UsageProblem(f"{path} is no shard: it is the report of a run that was not split")
    _verify_alike(reports)
    _verify_all_there(reports)
    results = [line for lines in reports.values() for line in lines[1:-1]]
    _verify_each_once(reports, results)
    footers = [lines[-1] for lines in reports.values()]
    found = [_header([lines[0] for lines in reports.values()], len(results)), *results]
    return [*found, report.footer(found, footers[0]["all"], max(footer["seconds"] for footer in footers))]


def _verify_alike(reports: _Reports) -> None:
    (first, theirs), *others = [(path, _told(lines)) for path, lines in reports.items()]
    for path, mine in others:
        for what in theirs:
            if mine[what] != theirs[what]:
                raise UsageProblem(
                    f"{first} and {path} are not of one run: {what} is {_short(theirs[what])} in the one "
                    f"and {_short(mine[what])} in the other"
                )


def _told(lines: Sequence[report.Line]) -> report.Line:
    """What must be the same in all shards, by what it is."""
    head = lines[0]
    implementation = {what: head["implementation"].get(what) for what in ("name", "version", "fork")}
    number = {"number of shards": head["shard"].partition("/")[2]}
    return {**implementation, **number, **{what: head[what] for what in _SAME}, "choice of test ids": lines[-1]["all"]}


def _short(value: object) -> str:
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
        raise UsageProblem(f"there is no report of shard {', '.join(missing)}: give all {count}")


def _verify_each_once(reports: _Reports, results: Sequence[report.Line]) -> None:
    seen: dict[str, Path] = {}
    for path, lines in reports.items():
        for line in lines[1:-1]:
            other = seen.setdefault(line["id"], path)
            if other != path:
                raise UsageProblem(f"{line['id']} is in both {other} and {path}")
    whole = next(iter(reports.values()))[-1]["all"]
    if report.census(seen) != whole:
        raise UsageProblem(f"the shards have {len(results)} test ids, and not the {whole['count']} that there are")


def _header(headers: Sequence[report.Line], expected: int) -> report.Line:
    """The header of the whole run; machines may differ."""
    first = headers[0]
    location = _joined(h["implementation"]["location"] for h in headers)
    machines = {what: _joined(h[what] for h in headers) for what in ("python", "platform")}
    return {
        **first,
        **machines,
        "implementation": {**first["implementation"], "location": location},
        "started": min(h["started"] for h in headers),
        "expected": expected,
        "shard": None,
        "balance": None,
    }


def _joined(texts: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(texts))
