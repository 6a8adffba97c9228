"""The listed deviations of all implementations as a Markdown page; imports no framework."""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module, util
from pathlib import Path
from pkgutil import iter_modules
from typing import NamedTuple

from autograd_conformance import implementations
from autograd_conformance.implementations.deviations import Cause, Deviation, Grade, devices

# Has a folder of scripts for each implementation, named like its module.
FOLDER = Path(implementations.__file__).with_name("findings")
# Has a file for each implementation of which it was recorded what it does without claiming it.
RECORDED = FOLDER.with_name("unclaimed")

# Characters that Markdown would interpret; an underscore within a word is not one.
_MARKS = re.compile(r"[*<\[]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")

_INTRODUCTION = """\
# Findings

Where the implementations deviate from the contract that the suite checks. `autograd-conformance list findings` prints
this page from `implementations/deviations/`. Runs report these test ids as `known`, and as `fixed` once they hold.
What is not claimed comes from runs (`implementations/unclaimed`, written by `benchmarks/unclaimed.py REPORT...`).

Each finding has a grade. Only the first two are faults of the implementation.

{grades}

Each finding that is listed has a standalone script that needs only the framework: `python SCRIPT` prints the actual and
the expected result and exits 1. Once the finding is fixed, the script prints `holds` and exits 0.
"""


def folder(name: str) -> Path:
    """The folder with the scripts of an implementation."""
    return FOLDER / name


def listed() -> dict[str, tuple[Deviation, ...]]:
    """The deviations of each implementation, for all releases, and of each package that registers a device."""
    places = {name: f"{implementations.__name__}.deviations.{name}" for name in implementations.ADAPTERS}
    found = {name: import_module(place).DEVIATIONS for name, place in places.items() if util.find_spec(place)}
    return {**found, **{each.name: implementations.of_device(each.name) for each in iter_modules(devices.__path__)}}


def by_script(deviations: Iterable[Deviation]) -> dict[str, list[Deviation]]:
    """The deviations by the script that shows them."""
    found: dict[str, list[Deviation]] = {}
    for deviation in deviations:
        found.setdefault(deviation.cause.script, []).append(deviation)
    return found


def markdown() -> str:
    """The page docs/findings.md."""
    everything = {name: deviations for name, deviations in listed().items() if deviations}
    counts = {name: _counts(name, found) for name, found in everything.items()}
    lines = [
        _introduction(),
        _row("implementation", *(grade.words for grade in Grade)),
        _row(*["---"] * (1 + len(Grade))),
    ]
    lines += [_row(f"[{name}](#{name})", *(_cell(n) for n in numbers)) for name, numbers in counts.items()]
    lines.append(_row("all", *(sum(filter(None, column)) for column in zip(*counts.values(), strict=True))))
    for name, deviations in everything.items():
        lines += ["", f"## {name}", *_section(name, deviations)]
    return "\n".join(lines) + "\n"


def _counts(name: str, found: Sequence[Deviation]) -> list[int | None]:
    """The number of findings of each grade; None if it is not known."""
    recorded = unclaimed(name)
    listed = [len(by_script(part)) for grade, part in by_grade(found).items() if grade is not Grade.UNCLAIMED]
    return [*listed, None if recorded is None else len(recorded.tests)]


def _cell(number: int | None) -> str:
    return "not recorded" if number is None else str(number)


class Unclaimed(NamedTuple):
    """What an implementation gets wrong without an error, or dies of, where it claims nothing, by test.

    For each test and outcome the Functions and what is wrong, as a run of this ``version`` found it.
    """

    version: str
    tests: dict[tuple[str, str], tuple[list[str], str]]


def unclaimed(name: str) -> Unclaimed | None:
    """What was recorded of an implementation; None if nothing was."""
    path = RECORDED / f"{name}.txt"
    if not path.is_file():
        return None
    first, *rows = path.read_text(encoding="utf-8").splitlines()
    tests: dict[tuple[str, str], tuple[list[str], str]] = {}
    for row in rows:
        id, outcome, what = row.split("  ", 2)
        test, _, about = id.rstrip("]").partition("[")
        functions, _ = tests.setdefault((test, outcome), ([], what))
        functions += filter(None, [about.rpartition("-")[0]])
    return Unclaimed(first.rpartition(" ")[2], tests)


def by_grade(deviations: Sequence[Deviation]) -> dict[Grade, list[Deviation]]:
    """The deviations of each grade."""
    return {grade: [d for d in deviations if d.cause.grade is grade] for grade in Grade}


def _introduction() -> str:
    """What the page is about, with the meaning of each grade."""
    grades = (f"* **{grade.words.capitalize()}**: {grade.applies}" for grade in Grade)
    return _INTRODUCTION.format(grades="\n".join(textwrap.fill(each, 120, subsequent_indent="  ") for each in grades))


def _row(*cells: object) -> str:
    return f"| {' | '.join(map(str, cells))} |"


def _section(name: str, deviations: Sequence[Deviation]) -> Iterator[str]:
    for grade, part in by_grade(deviations).items():
        if part:
            yield from ("", f"### {name}: {grade.words}")
        for script, members in by_script(part).items():
            yield from _finding(folder(name) / script, members)
    recorded = unclaimed(name)
    if recorded is not None and recorded.tests:
        yield from ("", f"### {name}: {Grade.UNCLAIMED.words}", "")
        for (test, outcome), (functions, what) in recorded.tests.items():
            of = f" of {', '.join(functions)}" if functions else ""
            yield f"* `{test}`{of}: {outcome}, {_plain(what)} (seen on {recorded.version})"


def _finding(script: Path, members: Sequence[Deviation]) -> Iterator[str]:
    yield from ("", f"#### {_title(script)}")
    for (promise, link), same in _by_source(members).items():
        if promise:
            yield from ("", f"> {_plain(promise)}", ">", f"> {_linked(link)}")
        see = "" if promise else f". See {_linked(link)}"
        yield ""
        yield from (f"* {_entry(cause, shown)}{see}" for cause, shown in same.items())
    yield from ("", f"[{script.name}](../{script.relative_to(FOLDER.parent.parent).as_posix()})")


def _by_source(members: Sequence[Deviation]) -> dict[tuple[str, str], dict[Cause, list[Deviation]]]:
    found: dict[tuple[str, str], dict[Cause, list[Deviation]]] = {}
    for deviation in members:
        cause = deviation.cause
        found.setdefault((cause.promise, cause.link), {}).setdefault(cause, []).append(deviation)
    return found


def _entry(cause: Cause, deviations: Sequence[Deviation]) -> str:
    releases = f", listed for {cause.releases}" if cause.releases else ""
    return f"{'; '.join(map(_tests, deviations))}: {_plain(cause.reason)} ({cause.versions}{releases})"


def _tests(deviation: Deviation) -> str:
    functions = f" of {', '.join(deviation.functions)}" if deviation.functions else ""
    return ", ".join(f"`{test}`" for test in deviation.ids) + functions


def _title(script: Path) -> str:
    """The first line of the script's docstring, or else its name."""
    text = ast.get_docstring(ast.parse(script.read_text(encoding="utf-8"))) if script.is_file() else None
    return _plain(text.splitlines()[0].rstrip(".") if text else script.stem.replace("_", " "))


def _plain(text: str) -> str:
    """The text with Markdown's special characters escaped, except in code."""
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(part if n % 2 else _MARKS.sub(r"\\\g<0>", part) for n, part in enumerate(parts))


def _linked(text: str) -> str:
    """The text with its URLs as links."""
    parts = re.split(r"(https?://[^\s,;]*[^\s,;.)])", text)
    return "".join(f"<{part}>" if n % 2 else _plain(part) for n, part in enumerate(parts))
