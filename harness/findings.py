"""What the implementations are listed not to keep, from their lists alone: no framework is imported."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module, util
from pathlib import Path

from autograd_conformance import implementations
from autograd_conformance.implementations.protocol import Deviation

# The scripts lie in a folder for each implementation, named like its module.
FOLDER = Path(implementations.__file__).with_name("findings")

# An underscore within a word is none.
_MARKS = re.compile(r"[*<\[]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")

_INTRODUCTION = """\
# Findings

What the implementations do otherwise than the contract that the suite checks. `autograd-conformance list findings`
prints this page from `implementations/*_deviations.py`. Runs report these test ids as `known`, and as `fixed` once they
hold.

* A **fault** breaks a sentence of the implementation's own documentation, which is quoted as it is displayed there.
* A **difference** is what an implementation does otherwise than PyTorch, or than PyTorch's users rely on, where its
  own documentation promises nothing else. It is nobody's fault.

Each finding has a script that shows it with the framework alone, without this suite: `python SCRIPT` prints what came
and what should have come, and exits 1; once it is mended it prints `holds` and exits 0.
"""


def _module(name: str) -> str:
    return implementations.ADAPTERS[name][0].partition(":")[0]


def folder(name: str) -> Path:
    """Where the scripts of an implementation are."""
    return FOLDER / _module(name).rpartition(".")[2]


def listed() -> dict[str, tuple[Deviation, ...]]:
    """The deviations of each implementation that has any, on whatever release."""
    places = {name: f"{_module(name)}_deviations" for name in implementations.ADAPTERS}
    return {name: import_module(place).DEVIATIONS for name, place in places.items() if util.find_spec(place)}


def by_script(deviations: Iterable[Deviation]) -> dict[str, list[Deviation]]:
    """The deviations that each script shows."""
    found: dict[str, list[Deviation]] = {}
    for deviation in deviations:
        found.setdefault(deviation.script, []).append(deviation)
    return found


def markdown() -> str:
    """The page docs/findings.md."""
    everything = {name: deviations for name, deviations in listed().items() if deviations}
    lines = [_INTRODUCTION, "| | faults | differences |", "| --- | --- | --- |"]
    for name, deviations in everything.items():
        faults, differences = _parted(deviations)
        lines.append(f"| [{name}](#{name}) | {len(by_script(faults))} | {len(by_script(differences))} |")
    for name, deviations in everything.items():
        lines += ["", f"## {name}", *_section(name, deviations)]
    return "\n".join(lines) + "\n"


def _parted(deviations: Sequence[Deviation]) -> tuple[list[Deviation], list[Deviation]]:
    """Faults and differences."""
    return [d for d in deviations if d.promise], [d for d in deviations if not d.promise]


def _section(name: str, deviations: Sequence[Deviation]) -> Iterator[str]:
    for heading, part in zip(("Faults", "Differences"), _parted(deviations), strict=True):
        if part:
            yield from ("", f"### {heading} of {name}")
        for script, members in by_script(part).items():
            yield from _finding(folder(name) / script, members)


def _finding(script: Path, members: Sequence[Deviation]) -> Iterator[str]:
    yield from ("", f"#### {_title(script)}")
    for (promise, link), same in _by_source(members).items():
        if promise:
            yield from ("", f"> {_plain(promise)}", ">", f"> {_linked(link)}")
        see = "" if promise else f". See {_linked(link)}"
        yield ""
        yield from (f"* {_entry(deviation)}{see}" for deviation in same)
    yield from ("", f"[{script.name}](../{script.relative_to(FOLDER.parent.parent).as_posix()})")


def _by_source(members: Sequence[Deviation]) -> dict[tuple[str, str], list[Deviation]]:
    found: dict[tuple[str, str], list[Deviation]] = {}
    for deviation in members:
        found.setdefault((deviation.promise, deviation.link), []).append(deviation)
    return found


def _entry(deviation: Deviation) -> str:
    tests = ", ".join(f"`{test}`" for test in deviation.id.split())
    functions = f" of {', '.join(deviation.function.split())}" if deviation.function else ""
    releases = f", listed for {deviation.releases}" if deviation.releases else ""
    return f"{tests}{functions}: {_plain(deviation.reason)} ({deviation.versions}{releases})"


def _title(script: Path) -> str:
    """The first line of the script's docstring, or its name where it is not there to be read."""
    told = ast.get_docstring(ast.parse(script.read_text(encoding="utf-8"))) if script.is_file() else None
    return _plain(told.splitlines()[0].rstrip(".") if told else script.stem.replace("_", " "))


def _plain(text: str) -> str:
    """The text with the marks that Markdown would take for its own escaped, outside of code."""
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(part if n % 2 else _MARKS.sub(r"\\\g<0>", part) for n, part in enumerate(parts))


def _linked(text: str) -> str:
    """The text with its addresses as links."""
    parts = re.split(r"(https?://[^\s,;]*[^\s,;.)])", text)
    return "".join(f"<{part}>" if n % 2 else _plain(part) for n, part in enumerate(parts))
