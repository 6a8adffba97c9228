"""``autograd-conformance report``: reports as a page."""

from __future__ import annotations

from pathlib import Path

import click

from autograd_conformance.harness import page
from autograd_conformance.harness.commands import Problem
from autograd_conformance.harness.outcomes import UsageProblem


@click.command("report")
@click.argument("reports", nargs=-1, metavar="REPORT...", type=click.Path(path_type=Path))
@click.option("-o", "--output", default="matrix.html", show_default=True, metavar="FILE", help="The page to write.")
def report(reports: tuple[Path, ...], output: str) -> None:
    """Make one page of the REPORTs of several runs: implementations by property and clause."""
    if not reports:
        raise Problem(
            "name the reports to show, as in: autograd-conformance report torch.ndjson jax.ndjson -o all.html"
        )
    try:
        found = page.read(reports)
        for one in found:
            if one.footer is None:
                click.echo(f"warning: the run of {one.path} did not finish", err=True)
        Path(output).write_text(page.html(found), encoding="utf-8")
    except UsageProblem as problem:
        raise Problem(str(problem)) from None
    except OSError as problem:
        raise Problem(f"the page cannot be written to {output}: {problem.strerror}; choose with -o FILE") from None
    click.echo(f"{output}: {len(found)} implementation{'s' if len(found) > 1 else ''}")
