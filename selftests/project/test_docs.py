"""The documentation: complete, its links and commands real, and the faults that it shows found."""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Iterator
from contextlib import suppress
from importlib import util
from pathlib import Path
from types import ModuleType
from unittest.mock import patch

import click
import pytest

from autograd_conformance.benchmarks import figures
from autograd_conformance.harness.catalogue import PACKAGE
from autograd_conformance.harness.check.report import verdicts
from autograd_conformance.harness.cli import main
from autograd_conformance.harness.outcomes import DEATH, HANG, OUTCOMES
from autograd_conformance.reference.properties import PROPERTIES

DOCS = PACKAGE / "docs"
FAULTS = DOCS / "faults"
PAGES = [PACKAGE / "README.md", PACKAGE / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))]

VERDICTS = {
    word for name, word in vars(verdicts).items() if name.isupper() and isinstance(word, str) and name[0] != "_"
} - {DEATH, HANG}


def named(page: Path) -> str:
    return page.relative_to(PACKAGE).as_posix()


# Completeness.


def test_the_readme_is_short():
    assert len((PACKAGE / "README.md").read_text("utf-8").splitlines()) <= 150


@pytest.mark.parametrize(
    ("folder", "names"),
    [
        ("properties", set(PROPERTIES)),
        ("outcomes", set(OUTCOMES)),
        ("verdicts", {word.replace(" ", "-") for word in VERDICTS}),
    ],
)
def test_each_has_a_page_that_the_index_leads_to(folder, names):
    assert {path.stem for path in (DOCS / folder).glob("*.md")} - {"index"} == names
    index = (DOCS / folder / "index.md").read_text("utf-8")
    assert f"<!-- table of {folder} -->" in index or all(f"]({name}.md)" in index for name in names)


def test_each_verdict_has_a_meaning():
    assert set(verdicts.MEANINGS) == VERDICTS


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_what_a_page_shows_is_there(page):
    for part, name in re.findall(r"<!-- (fault|output|fix) ([\w-]+) -->", page.read_text("utf-8")):
        path = FAULTS / f"{name}{'.txt' if part == 'output' else '.py'}"
        assert path.is_file(), f"{path} is missing; run: python docs/faults/record.py {name}"
        assert part != "fix" or "\n# Fixed:\n" in path.read_text("utf-8")


# Links.


def anchor(heading: str) -> str:
    """The anchor that a Markdown heading gets."""
    return re.sub(r"[\s-]+", "-", re.sub(r"[^\w\s-]", "", re.sub(r"[`*]|\]\([^)]*\)", "", heading)).strip().lower())


def anchors(page: Path) -> set[str]:
    return {anchor(heading) for heading in re.findall(r"^#+ (.+)$", page.read_text("utf-8"), re.M)}


def broken(page: Path) -> Iterator[str]:
    """The relative links of a page that lead nowhere. The site has a page for a file, and none for a folder."""
    text = re.sub(r"^ *```.*?^ *```|`[^`\n]*`(?!\])", "", page.read_text("utf-8"), flags=re.M | re.S)
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        path, _, place = link.partition("#")
        target = page.parent / path if path else page
        if "://" not in link and not (target.is_file() and (not place or place in anchors(target))):
            yield link


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_every_relative_link_resolves(page):
    assert list(broken(page)) == []


def test_a_broken_link_is_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# One heading\n\n[a](page.md) [b](page.md#one-heading) [c](none.md) [d](#none) [e](.)\n")
    assert list(broken(page)) == ["none.md", "#none", "."]


# Commands.


def commands(text: str) -> set[str]:
    """The calls of the command in console blocks and in code between words."""
    blocks = "\n".join(re.findall(r"^ *```console\n(.*?)^ *```$", text, re.M | re.S)).replace("\\\n", " ")
    found = re.findall(r"^(?:\$ |.*&& )(autograd-conformance .+)$", blocks, re.M)
    return {*found, *re.findall(r"`(autograd-conformance [a-z]+ [^`]*--?[^`]+)`", text)}


COMMANDS = sorted({line for page in PAGES if page.name != "ci.md" for line in commands(page.read_text("utf-8"))})


def parse(line: str) -> None:
    """Let the command read a line without doing it. Raises click's exception for what it does not know."""
    words, command = shlex.split(line, comments=True)[1:], main
    while isinstance(command, click.Group) and words:
        command = command.get_command(None, words.pop(0))
    # Options such as --import speak to the processes of a run by variables.
    with suppress(click.exceptions.Exit), patch.dict(os.environ):  # Exit is that of --help
        command.make_context(str(command.name), words)


@pytest.mark.parametrize("line", COMMANDS)
def test_every_command_can_be_given(line):
    parse(line)


def test_commands_are_found():
    assert {line.split()[1] for line in COMMANDS} >= {"run", "check", "accept", "compare", "report", "list", "keep"}


@pytest.mark.parametrize("line", ["autograd-conformance run torch --shards 1/4", "autograd-conformance export"])
def test_a_command_that_cannot_be_given_is_found(line):
    with pytest.raises(click.ClickException):
        parse(line)


# The faults that pages show.


def loaded(path: Path) -> ModuleType:
    spec = util.spec_from_file_location(f"docs_faults_{path.stem}", path)
    assert spec
    assert spec.loader
    sys.modules[spec.name] = module = util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# A property that a page shows may follow from another, which is named first.
_SHOWS = r"(?:[A-Z-]+ \(met in )?{}"

SHOWN = [path for path in sorted(FAULTS.glob("*_*.py")) if "\n# Fixed:\n" in path.read_text("utf-8")]


@pytest.mark.parametrize("path", SHOWN, ids=lambda path: path.stem)
def test_the_fault_is_found_as_shown_and_the_fix_accepted(path):
    pytest.importorskip("torch")
    from autograd_conformance.selftests.check.checking import faults_of

    module, shown = loaded(path), path.stem.upper().replace("_", "-")
    words = {verdict.word for _, verdict in faults_of(module.faulty, shown)}
    text = path.with_suffix(".txt").read_text("utf-8")
    recorded = set(re.findall(rf"^  ([A-Z ]+): {_SHOWS.format(shown)}\b", text, re.M))
    assert {word.upper() for word in words} == recorded != set(), f"run: python docs/faults/record.py {path.stem}"
    assert faults_of(module.fixed, shown) == []


def test_faults_are_shown_for_most_properties():
    assert len(SHOWN) >= 25


@pytest.mark.parametrize("path", sorted(FAULTS.glob("*_*.txt")), ids=lambda path: path.stem)
def test_what_is_recorded_is_a_fault_of_the_property(path):
    shown = path.stem.upper().replace("_", "-")
    assert re.search(rf"^(?:fail|  [A-Z ]+): {_SHOWS.format(shown)}\b", path.read_text("utf-8"), re.M)


def test_the_figures_of_a_run_of_torch_are_those_of_the_baseline():
    stale = [page.name for page, text in figures.pages().items() if page.read_text("utf-8") != text]
    assert not stale, "python benchmarks/figures.py writes them again"
    assert all(figures.verdict() in text for text in figures.pages().values())
