"""How much of PyTorch's Python layers the gate knows: the lines that test ids execute, and the mutants that they kill.

``python benchmarks/engine.py map`` runs the gate once and writes which test id executes which line. ``mutate`` makes
the mutants of the executed lines (see mutations.py) and runs, for each, the ids that execute its line until one fails.
``table`` prints the figures of docs/measurements.md, ``survivors`` the mutants that no id kills and no reason
explains, ``holes`` the list of docs/engine.md. Results are in a folder: a second ``mutate`` goes on where the first one
stopped.

Nothing of the installed files is changed: a mutant is the code of a function, exchanged in a forked process.
engine_scope.txt says which functions count, engine_survivors.txt why a mutant that survives is none.
"""

from __future__ import annotations

import argparse
import gc
import hashlib
import io
import json
import os
import select
import signal
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from fnmatch import fnmatch
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

from tabulate import tabulate

from autograd_conformance.benchmarks.engine_map import (
    FILES,
    HERE,
    MAP,
    SCOPE,
    TORCH,
    Map,
    Suite,
    id_of,
    lines_of,
    make_map,
    preload,
    tree_of,
)
from autograd_conformance.benchmarks.mutations import Mutant, functions_of, mutants
from autograd_conformance.harness.outcomes import FAILING

# A test id of a mutant may take so many times its seconds in the map, and so many more.
_TIMES, _MORE = 10, 30.0


def all_mutants(known: Map, pattern: str) -> Iterator[Mutant]:
    """The mutants of lines that an id executes, in functions that count."""
    for path in SCOPE.files:
        if not fnmatch(path, pattern):
            continue
        for mutant in mutants(path, tree_of(path)):
            if mutant.line in lines_of(path) and (path, mutant.line) in known.ids:
                yield mutant


def _drawn(mutant: Mutant) -> str:
    """The place of a mutant in the order in which samples are taken, which is that of a hash."""
    return hashlib.sha256(str(mutant).encode()).hexdigest()


def sampled(made: Iterable[Mutant], sample: int | None, each: int | None) -> list[Mutant]:
    """So many of all mutants, or so many of each file, in the order in which they are tried."""
    seen: Counter[str] = Counter()
    chosen = []
    for mutant in sorted(made, key=_drawn)[:sample]:
        seen[mutant.path] += 1
        if each is None or seen[mutant.path] <= each:
            chosen.append(mutant)
    return chosen


def mutate(folder: Path, chosen: Sequence[Mutant], most: float, jobs: int, again: bool) -> None:
    """Try mutants, and append a line for each to the results."""
    known, results = Map(folder), folder / "mutants.ndjson"
    done = {row["mutant"] for row in read(results) if not (again and row["fate"] == "survived")}
    left = [mutant for mutant in chosen if str(mutant) not in done]
    print(f"{len(chosen)} mutants, {len(left)} of them to try", file=sys.stderr)

    def work(suite: Suite, items: list[Any]) -> None:
        preload()
        functions = functions_by_code()
        gc.freeze()
        lanes = [os.fork() for _ in range(jobs - 1)]
        lane = next((n for n, child in enumerate(lanes) if child == 0), jobs - 1)
        trial = Trial(suite, {id_of(item): item for item in items}, known, functions, most)
        for mutant in left[lane::jobs]:
            with open(results, "a") as file:
                file.write(json.dumps(trial.of(mutant)) + "\n")
        if lane < jobs - 1:
            os._exit(0)
        for child in lanes:
            os.waitpid(child, 0)

    Suite(work).start()


def functions_by_code() -> dict[tuple[str, str, int], list[FunctionType]]:
    """The functions of torch's files that exist, by file, name and first line."""
    found = defaultdict(list)
    for each in gc.get_objects():
        if isinstance(each, FunctionType) and each.__code__.co_filename in FILES:
            code = each.__code__
            found[code.co_filename, code.co_qualname, code.co_firstlineno].append(each)
    return found


class Trial:
    """Runs the ids of a mutant in a forked process, until one fails that does not fail without it."""

    def __init__(
        self, suite: Suite, items: dict[str, Any], known: Map, functions: dict[Any, list[FunctionType]], most: float
    ) -> None:
        self._suite, self._items, self._known, self._functions, self._most = suite, items, known, functions, most
        self._unchanged: dict[str, str] = {}

    def of(self, mutant: Mutant) -> dict[str, Any]:
        """The row of a mutant: what became of it, by which id, with which message."""
        ids, spent = [], 0.0
        for name in self._known.ordered(mutant.path, mutant.line):
            spent += self._known.seconds[name]
            if name in self._items and (spent < self._most or not ids):
                ids.append(name)
        started = time.monotonic()
        row = self._forked(lambda: self._try(mutant, ids))
        row["seconds"] = round(time.monotonic() - started, 2)
        executing = len(self._known.ids[mutant.path, mutant.line])
        return {"mutant": str(mutant), "path": mutant.path, "line": mutant.line, "ids": executing, **row}

    def _try(self, mutant: Mutant, ids: list[str]) -> Iterator[dict[str, Any]]:
        try:
            self._exchange(mutant)
        except (SyntaxError, ValueError) as raised:
            yield {"fate": "no code", "why": str(raised)}
            return
        for name in ids:
            yield {"began": name}
            line = self._suite.run(self._items[name])
            if line["outcome"] in FAILING:
                failure = line.get("failure", {})
                said = failure.get("what") or failure.get("message") or line.get("reason", "")
                yield {"fate": "killed", "by": name, "outcome": line["outcome"], "says": said[:200]}
        yield {"fate": "survived", "tried": len(ids)}

    def _exchange(self, mutant: Mutant) -> None:
        """Give the functions of the mutant's module their new code. Raises ValueError if one cannot have it."""
        filename = str(TORCH / mutant.path)
        old = {_key(code): code for code in functions_of(compile(tree_of(mutant.path), filename, "exec"))}
        for code in functions_of(mutant.code(tree_of(mutant.path), filename)):
            if code != old.get(_key(code)):
                for function in self._functions.get(_key(code), ()):
                    function.__code__ = code

    def _forked(self, work: Callable[[], Iterable[dict[str, Any]]]) -> dict[str, Any]:
        """What a forked process says last, or what became of it."""
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            _silently(work, writing)
        os.close(writing)
        began = ""
        buffer = b""
        try:
            while True:
                limit = _MORE + _TIMES * self._known.seconds.get(began, 0.0)
                if not select.select([reading], [], [], limit)[0]:
                    return {"fate": "killed", "by": began, "outcome": "hangs", "says": ""}
                read = os.read(reading, 1 << 16)
                if not read:
                    return {"fate": "killed", "by": began, "outcome": "dies", "says": ""}
                *rows, buffer = (buffer + read).split(b"\n")
                for row in map(json.loads, rows):
                    began = row.get("began", began)
                    if row.get("fate") == "killed" and not self._is_due_to_the_mutant(row):
                        continue
                    if "fate" in row:
                        return row
        finally:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            os.close(reading)

    def _is_due_to_the_mutant(self, row: dict[str, Any]) -> bool:
        """Whether the id holds in a process without the mutant."""
        name = row["by"]
        if name not in self._unchanged:
            self._unchanged[name] = "?"
            found = self._forked(lambda: iter([{"fate": self._suite.run(self._items[name])["outcome"]}]))
            self._unchanged[name] = found["fate"]
        return self._unchanged[name] != row["outcome"]


def _key(code: CodeType) -> tuple[str, str, int]:
    return code.co_filename, code.co_qualname, code.co_firstlineno


def _silently(work: Callable[[], Iterable[dict[str, Any]]], writing: int) -> None:
    """Write the rows of the work into a pipe, and leave."""
    try:
        os.setpgid(0, 0)
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, 1)
        os.dup2(nothing, 2)
        sys.stdout = sys.stderr = io.StringIO()
        for row in work():
            os.write(writing, json.dumps(row).encode() + b"\n")
    finally:
        os._exit(0)


def read(path: Path) -> list[dict[str, Any]]:
    """The rows of a file of results; none if there is no file. Of a mutant that was tried again the last one counts."""
    lines = path.read_text().splitlines() if path.exists() else []
    return list({row["mutant"]: row for row in map(json.loads, lines)}.values())


def reasons() -> dict[str, str]:
    """The mutants that change nothing that a test could see, each with the reason."""
    found, reason = {}, ""
    for line in (HERE / "engine_survivors.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("= "):
            reason = line[2:]
        elif line.strip() and not line.startswith("#"):
            found[line.strip()] = reason
    return found


def print_table(folder: Path) -> None:
    """Print, by file, what is executed and what is killed; in all files what that makes of all their mutants."""
    known, rows, explained = Map(folder), read(folder / "mutants.ndjson"), reasons()
    counted = list(all_mutants(known, "*"))
    made, texts = Counter(mutant.path for mutant in counted), {str(mutant) for mutant in counted}
    tried = [row for row in rows if row["fate"] != "no code" and row["mutant"] in texts]
    table = [
        _row(path, known, made[path], [row for row in tried if row["path"] == path], explained) for path in SCOPE.files
    ]
    sums = [sum(row[n] for row in table) for n in range(1, 10)]
    shares = [_share(row[7], row[6] - row[8]) for row in table]
    weighed = [(row[5], share) for row, share in zip(table, shares, strict=True) if share is not None]
    weights = sum(weight for weight, _ in weighed)
    shares.append(sum(weight * share for weight, share in weighed) / weights if weights else None)
    by = [_killers([row for row in tried if row["path"] == path or path == "all"]) for path in (*SCOPE.files, "all")]
    headers = ("file", "lines", "executed", "ifs", "both ways", "mutants", "tried", "killed", "no fault", "survivors")
    print(
        tabulate(
            [
                [*row, "" if share is None else f"{100 * share:.0f}", names]
                for row, share, names in zip([*table, ["all", *sums]], shares, by, strict=True)
            ],
            headers=(*headers, "killed, %", "most by"),
            tablefmt="github",
        )
    )


def _row(path: str, known: Map, made: int, rows: list[dict[str, Any]], explained: dict[str, str]) -> list[Any]:
    lines = lines_of(path)
    ifs = list(known.ifs(path))
    killed = sum(row["fate"] == "killed" for row in rows)
    equal = sum(row["fate"] == "survived" and row["mutant"] in explained for row in rows)
    executed = sum((path, line) in known.ids for line in lines)
    return [path, len(lines), executed, len(ifs), sum(ifs), made, len(rows), killed, equal, len(rows) - killed - equal]


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _killers(rows: list[dict[str, Any]]) -> str:
    groups = Counter(row["by"].split("[")[0].split("/")[0] for row in rows if row["fate"] == "killed")
    return ", ".join(name for name, _ in groups.most_common(3))


def print_survivors(folder: Path) -> None:
    """Print the mutants that no id kills, without those that have a reason."""
    explained = reasons()
    for row in sorted(read(folder / "mutants.ndjson"), key=lambda row: (row["path"], row["line"])):
        if row["fate"] == "survived" and row["mutant"] not in explained:
            print(f"{row['line']:5} {row['tried']:4} of {row['ids']:4} ids  {row['mutant']}")
        if row["fate"] == "killed" and row["mutant"] in explained:
            print(
                f"killed by {row['by']}, though engine_survivors.txt says {explained[row['mutant']]}: {row['mutant']}"
            )


def print_holes(folder: Path) -> None:
    """Print the functions of which no id executes some lines."""
    known = Map(folder)
    for path in SCOPE.files:
        missed: dict[str, list[int]] = defaultdict(lambda: [0, 0])
        for line, function in lines_of(path).items():
            missed[function][0] += (path, line) not in known.ids
            missed[function][1] += 1
        words = [f"`{name}` {n} of {of}" for name, (n, of) in missed.items() if n]
        if words:
            print(f"\n**torch/{path}**: {', '.join(words)}")


def main() -> None:
    """Do what was asked for."""
    parser = argparse.ArgumentParser(description="how much of PyTorch's Python layers the gate knows")
    parser.add_argument("command", choices=["map", "mutate", "table", "survivors", "holes"])
    parser.add_argument("--folder", type=Path, default=Path("engine"), help="where results are; default: engine")
    parser.add_argument("--file", default="*", help="mutate only the files of this pattern")
    parser.add_argument("--sample", type=int, help="mutate only so many places, drawn by what they are")
    parser.add_argument("--each", type=int, help="mutate only so many places of each file")
    parser.add_argument("--most", type=float, default=30, help="seconds of tests for one mutant; default: 30")
    parser.add_argument("--jobs", type=int, default=1, help="so many mutants at a time; default: 1")
    parser.add_argument("--again", action="store_true", help="try again what survived")
    given = parser.parse_args()
    folder = given.folder.absolute()
    if given.command == "map":
        folder.mkdir(exist_ok=True)
    elif not (folder / MAP).exists():
        parser.error(f"there is no map in {folder}; make one: python benchmarks/engine.py map --folder {given.folder}")
    if not any(fnmatch(path, given.file) for path in SCOPE.files):
        parser.error(f"--file must match one of the files of engine_scope.txt, got {given.file}")
    commands: dict[str, Callable[[], None]] = {
        "map": lambda: make_map(folder),
        "mutate": lambda: mutate(
            folder,
            sampled(all_mutants(Map(folder), given.file), given.sample, given.each),
            given.most,
            given.jobs,
            given.again,
        ),
        "table": lambda: print_table(folder),
        "survivors": lambda: print_survivors(folder),
        "holes": lambda: print_holes(folder),
    }
    commands[given.command]()


if __name__ == "__main__":
    main()
