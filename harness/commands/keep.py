"""``autograd-conformance keep``: add the counterexamples of reports to a corpus."""

from __future__ import annotations

from pathlib import Path

import click

from autograd_conformance.harness.commands import Problem, echo
from autograd_conformance.harness.outcomes import UsageProblem
from autograd_conformance.harness.running import corpus


@click.command()
@click.argument("reports", nargs=-1, metavar="REPORT...", type=click.Path(path_type=Path))
@click.option("--corpus", "corpus_", default=corpus.DEFAULT_PATH, show_default=True, metavar="FILE",
              type=click.Path(path_type=Path), help="Corpus to add to; created if necessary.")  # fmt: skip
def keep(reports: tuple[Path, ...], corpus_: Path) -> None:
    """Add the counterexamples in REPORTs to a corpus.

    Run them again with run --corpus, or with run --profile replay --replay.
    """
    if not reports:
        raise Problem("give the reports whose counterexamples to keep, as in: autograd-conformance keep nightly.ndjson")
    try:
        kept = corpus.keep(corpus_, reports)
    except UsageProblem as problem:
        raise Problem(str(problem)) from None
    for one in kept.new:
        echo(f"new: {one}")
    if kept.lost:
        echo(f"not kept, since the report has neither a call nor a seed for it: {', '.join(kept.lost)}", err=True)
    if len(kept.unread) < len(reports):
        echo(f"{corpus_}: {len(kept.new)} new of {len(kept.all)}")
    if kept.unread:
        raise Problem("; ".join(kept.unread))
