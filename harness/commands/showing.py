"""``autograd-conformance report`` and ``export``: reports as a page, and as the files that CI reads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click

from autograd_conformance.harness import exports, page, runs
from autograd_conformance.harness.commands import Problem
from autograd_conformance.harness.outcomes import UsageProblem


@click.command("report")
@click.argument("reports", nargs=-1, metavar="REPORT...", type=click.Path(path_type=Path))
@click.option("-o", "--output", default="matrix.html", show_default=True, metavar="FILE", help="The page to write.")
def report(reports: tuple[Path, ...], output: str) -> None:
    """Make one page of the REPORTs of several runs: implementations by property and clause.

    Several of one implementation are shown as its history.
    """
    if not reports:
        raise Problem(
            "name the reports to show, as in: autograd-conformance report torch.ndjson jax.ndjson -o all.html"
        )
    try:
        found = runs.read_all(reports)
        for one in found:
            if one.flaw:
                click.echo(f"warning: the run of {one.path} {one.verdict}: {one.flaw}", err=True)
        Path(output).write_text(page.html(found), encoding="utf-8")
    except UsageProblem as problem:
        raise Problem(str(problem)) from None
    except OSError as problem:
        raise Problem(f"the page cannot be written to {output}: {problem.strerror}; choose with -o FILE") from None
    names = len({one.name for one in found})
    click.echo(f"{output}: {_count(len(found), 'run')} of {_count(names, 'implementation')}")


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'s' if number > 1 else ''}"


def export_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options that name the files to write beside a report."""
    for way, text in (
        ("badge", "Write a badge for shields.io's endpoint to this file."),
        ("markdown", "Write a summary for the page of a CI job to this file; - is stdout."),
        ("junit", "Write JUnit XML to this file."),
    ):
        command = click.option(f"--{way}", metavar="FILE", help=text)(command)
    return command


@click.command("export")
@click.argument("report", metavar="REPORT", type=click.Path(path_type=Path))
@export_options
def export_(report: Path, **options: str | None) -> None:
    """Write a REPORT as what CI shows: JUnit XML, Markdown, a badge."""
    targets = exports.chosen(options)
    if not targets:
        ways = ", ".join(f"--{way} FILE" for way in exports.WAYS)
        raise Problem(f"say what to write; give at least one of: {ways}")
    try:
        exports.check(targets, str(report))
    except UsageProblem as problem:
        raise Problem(str(problem)) from None
    export(report, targets)


def export(report: Path, targets: Mapping[str, str]) -> None:
    """Write a report in these ways. Raises Problem for what cannot be read or written."""
    try:
        if targets:
            click.echo(exports.write(runs.read(report), targets), nl=False)
    except UsageProblem as problem:
        raise Problem(str(problem)) from None
