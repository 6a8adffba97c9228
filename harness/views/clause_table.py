"""The results by clause: an overview for the terminal, and a table with level, outcome and counterexample."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby

from tabulate import tabulate

from autograd_conformance.harness.reports.ndjson import Line
from autograd_conformance.harness.views.matrix import SYMBOLS, in_columns, meaning
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


# So many clauses of a group are in one row.
_IN_A_ROW = 20


def overview(results: Iterable[Line], width: int) -> list[str]:
    """The groups that pass, the others with a symbol for each of their clauses, and the meaning of the symbols."""
    deciding = {name: worst(lines) for name, lines in by_clause(results).items()}
    passing: list[str] = []
    others: list[str] = []
    for group, names in groupby(deciding, key=lambda name: CLAUSES[name].group):
        found = {int(name.rsplit("-", 1)[1]): deciding[name]["outcome"] for name in names}
        if set(found.values()) == {"pass"}:
            passing.append(group)
        else:
            others += _rows_of(group, found)
    said = [f"all of {', '.join(passing)} pass"] if passing else []
    said += ["one symbol each of the others"] if others else []
    title = textwrap.wrap("; ".join(said), width, initial_indent="clauses: ")
    used = ["", meaning(line["outcome"] for line in deciding.values())] if others else []
    return [*title, *in_columns(others, width), *used]


def _rows_of(group: str, outcomes: Mapping[int, str]) -> list[str]:
    """The symbols of a group's clauses by their numbers, in fives."""
    signs = "".join(SYMBOLS[outcomes[n]] if n in outcomes else " " for n in range(1, max(outcomes) + 1))
    fives = [signs[start : start + 5] for start in range(0, len(signs), 5)]
    rows = [fives[start : start + _IN_A_ROW // 5] for start in range(0, len(fives), _IN_A_ROW // 5)]
    return [f"{'' if n else group:8} {' '.join(row)}".rstrip() for n, row in enumerate(rows)]


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
