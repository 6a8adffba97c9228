"""The survey of `watch`: a package's own tests are run once, and each Function that they call is checked.

    python examples/survey/watching.py PACKAGE FOLDER   run the tests in a checkout, and write watched.json

`programs.json` says which tests of each package, and how many seconds the checks of one Function may take.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from judgements import Judgement, judgement

FOLDER = Path(__file__).parent
PROGRAMS, WATCHED = (FOLDER / f"{name}.json" for name in ("programs", "watched"))
# What is said of a Function of which no check says anything, with the reason.
UNCHECKED = "not verified"
# The words of the page for what a report says: a fault, what may be meant, and what the program does not ask for.
WRONG, DIFFERS, NOTE = "WRONG", "DIFFERS", "NOTE"
# The letters of a reason that the page shows.
LONGEST = 120
COLUMNS = (
    "package", "called", "watched", "nothing is said", "`WRONG`", "of these, a fault", "`DIFFERS`", "`NOTE`",
    "faults known before", "of these, named",
)  # fmt: skip


@dataclass(frozen=True)
class Watched:
    """A Function that a package's tests call, and what is said of it, by word: accusations, or a reason."""

    package: str
    name: str
    said: dict[str, list[str]]

    @property
    def is_watched(self) -> bool:
        return UNCHECKED not in self.said

    def judged(self, word: str) -> dict[str, Judgement | None]:
        """The accusations under a word, each with its judgement: another derivative is judged like a wrong one."""
        texts = self.said.get(word, ())
        return {text: judgement(self.package, self.name, re.sub("^differs", "wrong", text)) for text in texts}

    @property
    def judgements(self) -> dict[str, Judgement | None]:
        return {text: judged for word in (WRONG, DIFFERS, NOTE) for text, judged in self.judged(word).items()}


def functions() -> list[Watched]:
    """The Functions that tests call, by package: their own, which the tests of others may call, too."""
    found: dict[tuple[str, str], list[dict[str, list[str]]]] = {}
    for names in json.loads(WATCHED.read_text()).values():
        for name, said in names.items():
            package, _, own = name.partition(":")
            found.setdefault((package, own), []).append(said)
    return [Watched(*which, _merged(each)) for which, each in sorted(found.items(), key=lambda row: row[0][0].lower())]


def _merged(several: list[dict[str, list[str]]]) -> dict[str, list[str]]:
    """What is said by several programs; a reason counts where none of them checks the Function."""
    checked = [said for said in several if UNCHECKED not in said] or several
    words = dict.fromkeys(word for said in checked for word in said)
    return {word: list(dict.fromkeys(text for said in checked for text in said.get(word, ()))) for word in words}


def watch(package: str, folder: Path) -> dict[str, dict[str, list[str]]]:
    """Run the tests of a package, and return what is said of each Function."""
    program = json.loads(PROGRAMS.read_text())[package]
    with tempfile.TemporaryDirectory() as there:
        report = Path(there, "report.json")
        words = ["watch", "--report", str(report), "--budget", "1000", "--limit", str(program["limit"]), "--"]
        words += [sys.executable, "-m", "pytest", "-q", "--continue-on-collection-errors", *program["tests"]]
        subprocess.run([sys.executable, "-m", "autograd_conformance", *words], cwd=folder, check=False)
        return _said(json.loads(report.read_text()))


def _said(document: dict) -> dict[str, dict[str, list[str]]]:
    """What a report says of each Function."""
    found: dict[str, dict[str, list[str]]] = {}
    for function in document["functions"]:
        said = found.setdefault(_short(function["name"]), {})
        for each in function["findings"]:
            # A warning is about a test that decided nothing.
            if each["level"] != "warning":
                texts = said.setdefault(_word(each), [])
                texts += {f"{each['verdict']} {each['test']}"} - {*texts}
    for problem in document["problems"]:
        found.setdefault(_short(problem["target"]), {UNCHECKED: [_without_folders(problem["message"])]})
    return dict(sorted(found.items()))


def _short(name: str) -> str:
    """The package of a Function, and its name in the judgements: that of the class, after a function around it."""
    module, _, path = name.rpartition(":")
    around, _, own = path.rpartition(".<locals>.")
    short = f"{around.lstrip('_')} {own.lstrip('_')}" if around else own.rpartition(".")[2].lstrip("_")
    return f"{module.partition('.')[0]}:{short}"


def _word(finding: dict) -> str:
    if finding["level"] == "note":
        return NOTE
    return DIFFERS if finding["verdict"] == "differs" else WRONG


def _without_folders(message: str) -> str:
    return re.sub(r"(/[^\s/:]+)*/(?=[\w.]+\.py)", "", message)


Known = list[tuple[str, str, Judgement]]


def figures(known: Known) -> dict[str, object]:
    """The numbers of the page's text."""
    found = functions()
    wrong = [(each, judged) for each in found for judged in each.judged(WRONG).values()]
    faults = [each for each, judged in wrong if judged is not None and judged.kind == "fault"]
    differing = [{*each.judged(DIFFERS).values()} for each in found if DIFFERS in each.said]
    watched = sum(each.is_watched for each in found)
    return {
        "called": len(found), "watched": watched, "share": f"{100 * watched / len(found):.0f} %",
        "known": len(known), "named": sum(_are_named(known)), "wrong": len(wrong), "faults": len(faults),
        "wrong_functions": len({id(each) for each, _ in wrong}), "faulty_functions": len({*map(id, faults)}),
        "differs": len(differing), "notes": sum(len(each.said.get(NOTE, ())) for each in found),
        "meant": sum(all(judged is not None and judged.kind == "on purpose" for judged in each) for each in differing),
    }  # fmt: skip


def _are_named(known: Known) -> list[bool]:
    """Of each fault whether `watch` names it."""
    said = {(each.package, each.name): {*each.judgements.values()} for each in functions()}
    return [judged in said.get((package, name), ()) for package, name, judged in known]


def section(known: Known) -> Iterator[str]:
    """The table of the page; ``known`` are the faults of Functions that `record` declared."""
    found = functions()
    named = [(package, is_named) for (package, _, _), is_named in zip(known, _are_named(known), strict=True)]
    yield from (f"| {' | '.join(COLUMNS)} |", f"|{' --- |' * len(COLUMNS)}")
    for package in (*sorted({each.package for each in found}, key=str.lower), "all"):
        mine = [each for each in found if package in (each.package, "all")]
        of_known = [is_named for name, is_named in named if package in (name, "all")]
        numbers = [*_numbers(mine), len(of_known), sum(of_known)]
        yield f"| {package} | {' | '.join(str(number) for number in numbers)} |"


def _numbers(found: list[Watched]) -> list[int]:
    wrong = [judged for each in found for judged in each.judged(WRONG).values()]
    return [
        len(found),
        sum(each.is_watched for each in found),
        sum(not each.said for each in found),
        len(wrong),
        sum(judged is not None and judged.kind == "fault" for judged in wrong),
        *(sum(len(each.said.get(word, ())) for each in found) for word in (DIFFERS, NOTE)),
    ]


def unwatched() -> Iterator[str]:
    """A row for each Function that is not watched, with the reason."""
    yield from ("| package | Functions | reason |", "| --- | --- | --- |")
    reasons: dict[tuple[str, str], list[str]] = {}
    for each in functions():
        for reason in each.said.get(UNCHECKED, ()):
            reasons.setdefault((each.package, reason), []).append(each.name)
    for (package, reason), names in reasons.items():
        yield f"| {package} | {', '.join(names)} | {textwrap.shorten(reason, LONGEST, placeholder=' ...')} |"


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    watched = watch(sys.argv[1], Path(sys.argv[2]))
    said = {**json.loads(WATCHED.read_text()), sys.argv[1]: watched}
    WATCHED.write_text(json.dumps(dict(sorted(said.items(), key=lambda each: each[0].lower())), indent=1) + "\n")
