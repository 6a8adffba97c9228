"""``autograd-conformance keep``: counterexamples of reports into a corpus."""

from __future__ import annotations

from pathlib import Path

import click

from autograd_conformance.harness import corpus
from autograd_conformance.harness.commands import Problem
from autograd_conformance.harness.outcomes import UsageProblem


@click.command()
@click.argument("reports", nargs=-1, metavar="REPORT...", type=click.Path(path_type=Path))
@click.option("--corpus", "corpus_", default=corpus.DEFAULT_PATH, show_default=True, metavar="FILE",
              type=click.Path(path_type=Path), help="The corpus to add to, made if there is none.")  # fmt: skip
def keep(reports: tuple[Path, ...], corpus_: Path) -> None:
    """Keep what the REPORTs found in a corpus, to be run again with --replay or --corpus."""
    if not reports:
        raise Problem("name the reports whose counterexamples to keep, as in: autograd-conformance keep nightly.ndjson")
    try:
        kept = corpus.keep(corpus_, reports)
    except UsageProblem as problem:
        raise Problem(str(problem)) from None
    for one in kept.new:
        click.echo(f"new: {one}")
    if kept.lost:
        click.echo(f"not kept, since neither a call nor a seed shows it: {', '.join(kept.lost)}", err=True)
    if len(kept.unread) < len(reports):
        click.echo(f"{corpus_}: {len(kept.new)} new of {len(kept.all)}")
    if kept.unread:
        raise Problem("; ".join(kept.unread))
