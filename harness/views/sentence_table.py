"""How much of the documentation is asked, as a Markdown table."""

from __future__ import annotations

from collections.abc import Iterable

from tabulate import tabulate

from autograd_conformance.reference.sentences import Document, Sentence


def coverage(documents: Iterable[Document]) -> str:
    """The number of sentences of each file that clauses ask, that need none, and that no clause asks yet."""
    rows, everything = [], list[Sentence]()
    for document in documents:
        rows.append(_row(document.path.stem, document.sentences))
        everything += document.sentences
    heading = ("document", "sentences", "asked", "with a reason", "not asked yet")
    return str(tabulate([*rows, _row("all", everything)], heading, tablefmt="github"))


def _row(name: str, sentences: list[Sentence]) -> tuple[str | int, ...]:
    counts = (sum(bool(getattr(s, kind)) for s in sentences) for kind in ("ids", "reason", "missing"))
    return (name, len(sentences), *counts)
