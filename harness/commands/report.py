"""``autograd-conformance report`` and ``export``: reports as an HTML page, and as a summary for CI."""

from __future__ import annotations

from pathlib import Path

import click

from autograd_conformance.harness.commands import Problem, echo
from autograd_conformance.harness.outcomes import UsageProblem
from autograd_conformance.harness.reports import files, reading
from autograd_conformance.harness.views import markdown, page


@click.command("report")
@click.argument("reports", nargs=-1, metavar="REPORT...", type=click.Path(path_type=Path))
@click.option("-o", "--output", default="matrix.html", show_default=True, metavar="FILE", help="HTML page to write.")
def report(reports: tuple[Path, ...], output: str) -> None:
    """Write one HTML page from several REPORTs.

    It shows properties and clauses by implementation.
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


# The file name that stands for stdout.
_STDOUT = "-"

markdown_option = click.option(
    "--markdown", metavar="FILE", help="Write a Markdown summary for a CI job to this file; - is stdout."
)


@click.command("export")
@click.argument("report", metavar="REPORT", type=click.Path(path_type=Path))
@markdown_option
def export_(report: Path, markdown: str | None) -> None:
    """Export a REPORT for CI as Markdown."""
    if markdown is None:
        raise Problem("nothing to export; give --markdown FILE")
    try:
        files.verify(summary_file(markdown), {"the report": report})
    except UsageProblem as problem:
        raise Problem(str(problem)) from None
    export(report, markdown)


def summary_file(target: str | None) -> list[files.Output]:
    """The file of --markdown; none if it is stdout, or was not asked for."""
    if target is None or target == _STDOUT:
        return []
    return [files.Output(Path(target), files.MARKDOWN, "the file of --markdown", "--markdown")]


def export(report: Path, target: str) -> None:
    """Write the summary of a report. Raises Problem for files that cannot be read or written."""
    try:
        text = markdown.text(reading.read(report))
        for file in summary_file(target):
            file.write(text)
    except UsageProblem as problem:
        raise Problem(str(problem)) from None
    if target == _STDOUT:
        click.echo(text, nl=False)
