"""The results by clause: an overview for the terminal, and a table with level, outcome and counterexample."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

from tabulate import tabulate

from autograd_conformance.harness.reports.ndjson import Line
from autograd_conformance.harness.views.matrix import SYMBOLS, meaning
from autograd_conformance.reference.clauses import CLAUSES


def by_clause(results: Iterable[Line]) -> dict[str, list[Line]]:
    """The result lines of each clause with results, in the order of the catalogue."""
    found: dict[str, list[Line]] = {name: [] for name in CLAUSES}
    for line in results:
        if "clause" in line:
            found[line["clause"]].append(line)
    return {name: lines for name, lines in found.items() if lines}


def worst(lines: Sequence[Line]) -> Line:
    """The line with the worst outcome."""
    ranks = list(SYMBOLS)
    return min(lines, key=lambda line: ranks.index(line["outcome"]))


def overview(results: Iterable[Line]) -> list[str]:
    """A line for each group, with the symbol of each of its clauses."""
    deciding = {name: worst(lines) for name, lines in by_clause(results).items()}
    lines = []
    for group, names in groupby(deciding, key=lambda name: CLAUSES[name].group):
        numbers = {int(name.rsplit("-", 1)[1]): SYMBOLS[deciding[name]["outcome"]] for name in names}
        signs = "".join(numbers.get(n, " ") for n in range(1, max(numbers) + 1))
        spaced = " ".join(signs[start : start + 5] for start in range(0, len(signs), 5))
        lines.append(f"{group:8} {spaced}".rstrip())
    return lines


def legend(results: Iterable[Line]) -> str:
    """The meaning of the symbols in the overview."""
    return meaning(worst(lines)["outcome"] for lines in by_clause(results).values())


def rows(results: Iterable[Line], *, outcomes: Sequence[str] = tuple(SYMBOLS)) -> list[tuple[str, str, str, str]]:
    """Clause, level, worst outcome and counterexample of each clause whose worst outcome is one of these."""
    deciding = {name: worst(lines) for name, lines in by_clause(results).items()}
    return [
        (name, CLAUSES[name].level, line["outcome"], counterexample(line))
        for name, line in deciding.items()
        if line["outcome"] in outcomes
    ]


def counterexample(line: Line) -> str:
    """The actual and the expected result and what was drawn, in one line."""
    failure = line.get("failure", {})
    if "what" not in failure:
        return str(failure.get("message") or line.get("reason", ""))
    chosen = f" ({failure['chosen']})" if failure.get("chosen") else ""
    text = f"{failure['what']}: got {failure['got']}, expected {failure['expected']}{chosen}"
    return " ".join(text.split())


def markdown(results: Iterable[Line]) -> str:
    """The table of all clauses, as Markdown."""
    cells = [tuple(cell.replace("|", "\\|") for cell in row) for row in rows(results)]
    return str(tabulate(cells, ("clause", "level", "outcome", "smallest counterexample"), tablefmt="github"))
