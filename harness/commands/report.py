"""``autograd-conformance report`` and ``export``: reports as an HTML page, and as files for CI."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click

from autograd_conformance.harness.commands import Problem, echo
from autograd_conformance.harness.outcomes import UsageProblem
from autograd_conformance.harness.reports import files, reading
from autograd_conformance.harness.views import exports, page


@click.command("report")
@click.argument("reports", nargs=-1, metavar="REPORT...", type=click.Path(path_type=Path))
@click.option("-o", "--output", default="matrix.html", show_default=True, metavar="FILE", help="HTML page to write.")
def report(reports: tuple[Path, ...], output: str) -> None:
    """Write one HTML page from several REPORTs.

    It shows properties and clauses by implementation. Several reports of one implementation are shown as its history.
    """
    if not reports:
        raise Problem(
            "give the reports to show, as in: autograd-conformance report torch.ndjson jax.ndjson -o all.html"
        )
    target = files.Output(Path(output), files.PAGE, "the page", "-o")
    try:
        files.verify([target], {f"the report {path}": path for path in reports})
        found = reading.read_all(reports)
        for one in found:
            if one.flaw:
                echo(f"warning: the run of {one.path} {one.verdict}: {one.flaw.reason}", err=True)
        target.write(page.html(found))
    except UsageProblem as problem:
        raise Problem(str(problem)) from None
    names = len({one.name for one in found})
    echo(f"{output}: {_count(len(found), 'run')} of {_count(names, 'implementation')}")


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'s' if number > 1 else ''}"


def export_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options for the files to export to."""
    for name, text in (
        ("badge", "Write a badge for shields.io's endpoint to this file."),
        ("markdown", "Write a Markdown summary for a CI job to this file; - is stdout."),
        ("junit", "Write JUnit XML to this file."),
    ):
        command = click.option(f"--{name}", metavar="FILE", help=text)(command)
    return command


@click.command("export")
@click.argument("report", metavar="REPORT", type=click.Path(path_type=Path))
@export_options
def export_(report: Path, **options: str | None) -> None:
    """Export a REPORT for CI as JUnit XML, Markdown or a badge."""
    if not any(options.values()):
        formats = ", ".join(f"--{name} FILE" for name in exports.FORMATS)
        raise Problem(f"nothing to export; give at least one of: {formats}")
    try:
        targets = exports.chosen(options)
        files.verify(exports.outputs(targets), {"the report": report})
    except UsageProblem as problem:
        raise Problem(str(problem)) from None
    export(report, targets)


def export(report: Path, targets: Mapping[str, str]) -> None:
    """Export a report to these files. Raises Problem for files that cannot be read or written."""
    try:
        if targets:
            click.echo(exports.write(reading.read(report), targets), nl=False)
    except UsageProblem as problem:
        raise Problem(str(problem)) from None
