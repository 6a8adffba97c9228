"""``autograd-conformance list``: Functions, properties, clauses, sentences, verdicts, findings and implementations."""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

import click
from tabulate import tabulate

from autograd_conformance import implementations
from autograd_conformance.harness import catalogue
from autograd_conformance.harness.check.report import verdicts
from autograd_conformance.harness.commands import Group, Problem
from autograd_conformance.harness.outcomes import UsageProblem
from autograd_conformance.harness.reports import reading
from autograd_conformance.harness.views import clause_table, findings, sentence_table
from autograd_conformance.implementations.protocol import Unavailable
from autograd_conformance.reference.clauses import CLAUSES
from autograd_conformance.reference.functions import FUNCTIONS
from autograd_conformance.reference.properties import PROPERTIES
from autograd_conformance.reference.sentences import Document, inventory


@click.group("list", cls=Group)
def list_() -> None:
    """List what the suite checks, and what it has found."""


@list_.command("functions")
def list_functions() -> None:
    """List the documented Functions that the suite checks."""
    rows = [(f.name, ", ".join(a.name for a in f.arguments), f.exercises, f.document) for f in FUNCTIONS.values()]
    _table(("function", "arguments", "exercises", "document"), rows)


@list_.command("properties")
def list_properties() -> None:
    """List the properties that every Function has to keep."""
    _table(("property", "what must hold"), [(p.id, p.sentence) for p in PROPERTIES.values()])


@list_.command("clauses")
@click.option("--coverage", is_flag=True, help="Print how many clauses of each group are tested instead, as Markdown.")
@click.option(
    "--report", "report_", metavar="FILE", help="Print the results of each clause in a report instead, as Markdown."
)
def list_clauses(coverage: bool, report_: str | None) -> None:
    """List the clauses of the contract, with their tests."""
    if coverage and report_ is not None:
        raise Problem("--coverage and --report exclude each other; give one of them")
    if report_ is not None:
        click.echo(_clauses_of(Path(report_)))
        return
    if coverage:
        click.echo(catalogue.coverage())
        return
    rows = [(c.id, c.level, c.sentence, c.document, catalogue.where(c)) for c in CLAUSES.values()]
    _table(("clause", "level", "what must hold", "document", "tests"), rows)


def _clauses_of(path: Path) -> str:
    try:
        (report,) = reading.read_all([path])
    except UsageProblem as problem:
        raise Problem(str(problem)) from None
    results = [line for line in report.results if "clause" in line]
    if not results:
        raise Problem(
            f"{path} has no results of clauses; give the report of a run without --functions and --properties, "
            "which checks them all"
        )
    return clause_table.markdown(results)


@list_.command("sentences")
@click.option("--coverage", is_flag=True, help="Print how many sentences are asked instead, as Markdown.")
@click.option(
    "--changed", is_flag=True, help="Print what the docstrings of the installed torch say more instead, and no more."
)
def list_sentences(coverage: bool, changed: bool) -> None:
    """List the sentences of PyTorch's documentation, with the clauses that ask them or why none does."""
    if coverage and changed:
        raise Problem("--coverage and --changed exclude each other; give one of them")
    documents = inventory()
    if coverage:
        click.echo(sentence_table.coverage(documents))
    elif changed:
        _list_changes(documents)
    else:
        _table(("name", "sentence", "asked by"), [(s.name, s.text, s.answer) for d in documents for s in d.sentences])


def _list_changes(documents: list[Document]) -> None:
    try:
        version = implementations.load("torch").environment().version
    except Unavailable as problem:
        raise Problem(str(problem)) from None
    new, gone = import_module("autograd_conformance.implementations.torch.documents").changes(documents)
    if not new and not gone:
        click.echo(f"nothing changed: the docstrings of torch {version} say what the inventory has")
        return
    rows = [(word, name, text) for word, said in (("new", new), ("gone", gone)) for name, text in said]
    _table(("change", "name", "sentence"), rows)


@list_.command("verdicts")
def list_verdicts() -> None:
    """List the words with which check says what is wrong with a Function."""
    _table(("verdict", "meaning"), list(verdicts.MEANINGS.items()))


@list_.command("findings")
def list_findings() -> None:
    """List the findings with their scripts, as Markdown.

    Each has a grade: a wrong result or crash, a broken promise, outdated documentation, or a difference.
    """
    click.echo(findings.markdown(), nl=False)


@list_.command("implementations")
def list_implementations() -> None:
    """List the implementations that the suite can check."""
    _table(
        ("implementation", "installed"),
        [(name, _installed(name)) for name in (*implementations.ADAPTERS, *implementations.joined())],
    )


def _installed(name: str) -> str:
    try:
        return implementations.load(name).environment().version
    except Unavailable as problem:
        return f"not installed: {problem}"


def _table(heading: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print an aligned table, with long cells wrapped to the terminal; elsewhere a line a row, with tabs for `cut`."""
    if not sys.stdout.isatty():
        click.echo("\n".join("\t".join(row) for row in (heading, *rows)))
        return
    width = shutil.get_terminal_size().columns
    fixed = sum(max(len(row[n]) for row in (heading, *rows)) + 2 for n in range(len(heading)) if _short(rows, n))
    wrapped = max(20, (width - fixed) // max(1, sum(not _short(rows, n) for n in range(len(heading)))) - 2)
    rows = [[c if _short(rows, n) else textwrap.fill(c, wrapped) for n, c in enumerate(row)] for row in rows]
    click.echo(tabulate(rows, heading, tablefmt="simple"))


def _short(rows: Sequence[Sequence[str]], column: int) -> bool:
    return max(len(row[column]) for row in rows) <= 28
