"""The survey: what `record` and `check PACKAGE` make of published packages, and what is found with it.

    python examples/survey/survey.py check [PATTERN]   check the declarations, and write outcomes.json
    python examples/survey/survey.py page              write docs/survey.md from outcomes.json and judgements.py

`recorded` has what `record` wrote while a package's own tests ran, `assumed` what `check PACKAGE` assumed: nobody
edited them. `left_out.json` says why other Functions have no declaration, and `called.json` how many Functions the
tests called, and how many of these `record` declared.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

import watching
from judgements import Judgement, judgement

FOLDER = Path(__file__).parent
OUTCOMES, LEFT_OUT, CALLED = (FOLDER / f"{name}.json" for name in ("outcomes", "left_out", "called"))
# What the page says before the packages, and before what `watch` finds.
HEAD, WATCHED = (FOLDER / f"{name}.md" for name in ("head", "watched"))
PAGE = FOLDER.parents[1] / "docs" / "survey.md"
# What a Function is counted as, if some of its accusations are of the kind: the first one counts.
KINDS = {"fault": "The faults", "on purpose": "On purpose", "other arguments": "Other arguments than it is meant for"}
UNCHECKED = "not checked"
# Files of Functions whose calls take long: of these the first declaration of each Function is checked.
SLOW = ("gpytorch__variational", "linear_operator", "memcnn", "torchkbnufft")
PACE = {True: ("--examples", "0.0625", "--time-limit", "10"), False: ("--examples", "1")}
# The letters of a message that are kept.
LONGEST = 200
WAYS = {"recorded": "`record`", "assumed": "`check PACKAGE`"}


@dataclass(frozen=True)
class Row:
    """A Function that is declared: how, and the accusations, each with its judgement."""

    package: str
    name: str
    way: str
    found: tuple[str, ...]

    @property
    def judgements(self) -> dict[str, Judgement | None]:
        return {each: judgement(self.package, self.name, each) for each in self.found}

    @property
    def outcome(self) -> str:
        kinds = {each.kind for each in self.judgements.values() if each is not None}
        unchecked = any(each.startswith(UNCHECKED) for each in self.found)
        return next((kind for kind in KINDS if kind in kinds), UNCHECKED if unchecked else "holds")


def declared(pattern: str = "*") -> list[Path]:
    """The files with declarations, by package."""
    found = (
        path
        for way in WAYS
        for path in FOLDER.joinpath(way).glob("*.py")
        if fnmatchcase(path.stem.removeprefix("check_"), pattern)
    )
    return sorted(found, key=lambda path: (path.stem.lower(), path.parent.name))


def check(path: Path) -> dict[str, list[str]]:
    """The accusations of each Function that a file declares."""
    slow = path.stem.removeprefix("check_") in SLOW
    words = ["check", path.name, "--profile", "quick", "--seed", "0", *PACE[slow], "--format", "json"]
    if slow:
        words += ["--functions", ",".join(name.lstrip("_") for name in functions_of(path))]
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "autograd_conformance", *words],
        cwd=path.parent, capture_output=True, text=True, check=False,
    )  # fmt: skip
    document = json.loads(done.stdout)
    results = {each["name"]: sorted(set(_accusations(each))) for each in document["functions"]}
    return results | {each["target"]: [f"{UNCHECKED}: {_short(each['message'])}"] for each in document["problems"]}


def _short(message: str) -> str:
    """A message without the folders of this machine."""
    text = re.sub(r"(/[^\s/:]+)*/(?=[\w.]+\.py|[\w]+/[\w/]+\.py)", "", message)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]} ..."


def _accusations(function: dict) -> Iterator[str]:
    for each in function["findings"]:
        if each["verdict"] == "error":
            yield f"{UNCHECKED}: an error of the checker in {each['test']}"
        elif each["level"] == "error":
            yield f"{each['verdict']} {each['test'] or each['sentence']}"


def rows() -> list[Row]:
    """The Functions that are declared, by package."""
    outcomes, found = json.loads(OUTCOMES.read_text()), []
    for path in declared():
        place = f"{path.parent.name}/{path.name}"
        functions = outcomes.get(place) or functions_of(path)
        way, _, file = place.partition("/")
        package = file.removeprefix("check_").removesuffix(".py").partition("__")[0]
        # A Function that was called in several ways has several declarations.
        accused: dict[str, list[str]] = {}
        for name, each in functions.items():
            base = re.sub(r"_[23]$", "", name)
            accused.setdefault(base if base in functions else name, []).extend(each)
        found += [Row(package, name, way, tuple(dict.fromkeys(each))) for name, each in accused.items()]
    return found


def functions_of(path: Path) -> dict[str, list[str]]:
    """The Functions of a file that is not checked yet."""
    names = re.findall(r"= Declaration\(\s*([\w.]+)", path.read_text())
    return {name.rpartition(".")[2]: [f"{UNCHECKED}: not yet"] for name in names}


def page() -> str:
    """The page as Markdown."""
    found, left_out = rows(), json.loads(LEFT_OUT.read_text())
    parts = [
        _head(found, left_out), _packages(found, left_out), _watched(found),
        _accusations_of([*found, *watching.functions()]), _reasons(left_out),
    ]  # fmt: skip
    return "\n".join(line for part in parts for line in part) + "\n"


def _head(found: list[Row], left_out: dict[str, dict[str, str]]) -> list[str]:
    outcomes = Counter(row.outcome for row in found)
    without = sum(map(len, left_out.values()))
    packages = {row.package for row in found} | set(left_out)
    text = HEAD.read_text()
    numbers: dict[str, object] = {
        "packages": len(packages), "functions": len(found) + without, "declared": len(found), "without": without,
        "recorded": sum(row.way == "recorded" for row in found), "holds": outcomes["holds"],
        "faulty": outcomes["fault"], "purpose": outcomes["on purpose"], "others": outcomes["other arguments"],
        "unchecked": outcomes[UNCHECKED],
    }  # fmt: skip
    called = json.loads(CALLED.read_text())
    numbers["called"] = called["called"]
    numbers["recorded_share"] = f"{100 * called['recorded'] / called['called']:.0f} %"
    return [text.format(**numbers).rstrip()]


def _packages(found: list[Row], left_out: dict[str, dict[str, str]]) -> list[str]:
    """A row for each package."""
    names = sorted({row.package for row in found} | set(left_out), key=str.lower)
    lines = [
        "| package | Functions | declared by `record` | by `check PACKAGE` | hold "
        "| a fault | on purpose | other arguments | not checked | not declared |",
        f"|{' --- |' * 10}",
    ]
    for name in names:
        mine, others = [row for row in found if row.package == name], left_out.get(name, {})
        outcomes, ways = Counter(row.outcome for row in mine), Counter(row.way for row in mine)
        numbers = [
            len(mine) + len(others), ways["recorded"], ways["assumed"],
            outcomes["holds"], *(outcomes[kind] for kind in (*KINDS, UNCHECKED)), len(others),
        ]  # fmt: skip
        lines.append(f"| {name} | {' | '.join(str(number) for number in numbers)} |")
    return lines


def _watched(found: list[Row]) -> Iterator[str]:
    """What `watch` finds by the same tests; a fault that several accusations name is one of each."""
    faults = [
        (row.package, row.name, judged)
        for row in found
        for judged in row.judgements.values()
        if row.way == "recorded" and judged is not None and judged.kind == "fault"
    ]
    text = WATCHED.read_text().format(**watching.figures(faults)).rstrip()
    yield from (text, "", *watching.section(faults), "", *watching.unwatched())


def _accusations_of(found: Sequence[Row | watching.Watched]) -> Iterator[str]:
    """The faults, and what is on purpose: each with the Functions that it is true of."""
    for kind, title in KINDS.items():
        yield from (
            "",
            f"## {title}",
            "",
            "| package | Functions | accusation | by hand |",
            "| --- | --- | --- | --- |",
        )
        groups: dict[tuple[str, Judgement], tuple[list[str], list[str]]] = {}
        for row in found:
            for accusation, judged in row.judgements.items():
                if judged is not None and judged.kind == kind:
                    functions, said = groups.setdefault((row.package, judged), ([], []))
                    functions += [row.name] * (row.name not in functions)
                    said += [accusation] * (accusation not in said)
        for (package, judged), (functions, said) in groups.items():
            script = f" `{judged.script}`" if judged.script else ""
            yield f"| {package} | {', '.join(functions)} | {', '.join(said)} | {judged.sentence}{script} |"


def _reasons(left_out: dict[str, dict[str, str]]) -> Iterator[str]:
    """Why Functions are not declared."""
    yield from ("", "## Not declared, and why", "", "| package | Functions | reason |", "| --- | --- | --- |")
    for package, functions in sorted(left_out.items(), key=lambda each: each[0].lower()):
        reasons: dict[str, list[str]] = {}
        for function, reason in functions.items():
            reasons.setdefault(reason, []).append(function)
        for reason, names in reasons.items():
            yield f"| {package} | {', '.join(names)} | {_short(reason).replace('|', '/')} |"


if __name__ == "__main__":
    if sys.argv[1:2] == ["check"]:
        for path in declared(*sys.argv[2:3]):
            accused = check(path)
            outcomes = json.loads(OUTCOMES.read_text()) if OUTCOMES.exists() else {}
            outcomes[f"{path.parent.name}/{path.name}"] = accused
            OUTCOMES.write_text(json.dumps(dict(sorted(outcomes.items())), indent=1) + "\n")
            print(path, flush=True)
    elif sys.argv[1:] == ["page"]:
        PAGE.write_text(page())
    else:
        sys.exit(__doc__)
