"""The results as a matrix of properties by Functions, for the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

# The symbol of each outcome, worst first: a cell with several results shows the worst.
SYMBOLS = {
    "error": "E",
    "fail": "F",
    "missing": "M",
    "vacuous": "V",
    "fixed": "X",
    "dies": "D",
    "silent": "w",
    "known": "k",
    "emulated": "e",
    "skip": "s",
    "refuses": "r",
    "holds": "h",
    "unsupported": "u",
    "pass": ".",
}
NOT_APPLICABLE = " "
_GROUP = 5


@dataclass(frozen=True)
class Matrix:
    """The outcomes on one device: a row for each property, a column for each Function, in the suite's order."""

    device: str
    properties: tuple[str, ...]
    functions: tuple[str, ...]
    cells: Mapping[tuple[str, str], str]

    def outcome(self, property_id: str, function: str) -> str | None:
        """The worst outcome of a property on a Function; None if it does not apply."""
        return self.cells.get((property_id, function))

    def row(self, property_id: str) -> list[str]:
        """The symbols of a property, one for each Function."""
        found = (self.outcome(property_id, function) for function in self.functions)
        return [SYMBOLS[outcome] if outcome else NOT_APPLICABLE for outcome in found]

    @property
    def remarkable(self) -> tuple[str, ...]:
        """The properties with something other than passes."""
        differing = {place[0] for place, outcome in self.cells.items() if outcome != "pass"}
        return tuple(name for name in self.properties if name in differing)


def matrices(results: Iterable[dict[str, Any]], properties: Sequence[str], functions: Sequence[str]) -> list[Matrix]:
    """A matrix for each device, in the order of the results; all have the same columns."""
    ranks, applied = list(SYMBOLS), set()
    cells: dict[str, dict[tuple[str, str], str]] = {}
    for line in results:
        if "property" not in line:
            continue
        place = (line["property"], line["function"])
        applied.add(line["function"])
        on_device = cells.setdefault(line["device"], {})
        on_device[place] = min(on_device.get(place, "pass"), line["outcome"], key=ranks.index)
    return [
        Matrix(
            device,
            tuple(p for p in properties if any(p == place[0] for place in found)),
            tuple(f for f in functions if f in applied),
            found,
        )
        for device, found in cells.items()
    ]


def remarkable(found: Sequence[Matrix]) -> Matrix:
    """The rows of all devices that have something other than passes; one of another device than the first names it."""
    rows = [
        (name if one is found[0] else f"{name} on {one.device}", one, name) for one in found for name in one.remarkable
    ]
    cells = {
        (row, function): outcome
        for row, one, name in rows
        for function in one.functions
        if (outcome := one.outcome(name, function)) is not None
    }
    return Matrix(found[0].device, tuple(row for row, *_ in rows), found[0].functions, cells)


def text(matrix: Matrix, width: int) -> list[str]:
    """The matrix in lines no wider than ``width``; its columns are numbered as in `columns`."""
    label = max(map(len, matrix.properties), default=0)
    room = width - label - 1
    spacious = 3 * len(matrix.functions) <= room
    lines: list[str] = []
    for start, stop in _blocks(len(matrix.functions), room, spacious):
        numbers = [str(n + 1) for n in range(start, stop)]
        lines += [f"{'':{label}} {row}".rstrip() for row in _heading(numbers, spacious)]
        for property_id in matrix.properties:
            row = matrix.row(property_id)[start:stop]
            lines.append(f"{property_id:{label}} {_joined(row, spacious)}".rstrip())
        lines.append("")
    return lines


def columns(matrix: Matrix, width: int) -> list[str]:
    """The names of the numbered columns that have something other than passes, in lines no wider than ``width``."""
    named = {function for (_, function), outcome in matrix.cells.items() if outcome != "pass"}
    return in_columns([f"{n:>2} {name}" for n, name in enumerate(matrix.functions, 1) if name in named], width)


def legend(found: Iterable[Matrix]) -> str:
    """The meaning of the symbols in these matrices."""
    return f"{meaning(outcome for matrix in found for outcome in matrix.cells.values())}, blank not applicable"


def meaning(outcomes: Iterable[str]) -> str:
    """The symbols of these outcomes with their names."""
    used = set(outcomes)
    return ", ".join(f"{SYMBOLS[name]} {name}" for name in reversed(SYMBOLS) if name in used)


def _blocks(count: int, room: int, spacious: bool) -> list[tuple[int, int]]:
    """The ranges of Functions that fit on one line."""
    groups = max(1, (room + 1) // (_GROUP + 1))
    size = count if spacious else groups * _GROUP
    return [(start, min(start + size, count)) for start in range(0, count, max(size, 1))]


def _heading(numbers: Sequence[str], spacious: bool) -> list[str]:
    if spacious:
        return ["".join(f"{number:>3}" for number in numbers)]
    digits = max(map(len, numbers))
    return [_joined([number.rjust(digits)[place] for number in numbers], False) for place in range(digits)]


def _joined(cells: Sequence[str], spacious: bool) -> str:
    if spacious:
        return "".join(f"{cell:>3}" for cell in cells)
    return " ".join("".join(cells[start : start + _GROUP]) for start in range(0, len(cells), _GROUP))


def in_columns(entries: Sequence[str], width: int) -> list[str]:
    """The entries in as many columns as fit, sorted down the columns."""
    wide = max(map(len, entries), default=0) + 2
    count = max(1, (width + 2) // wide)
    tall = -(-len(entries) // count)
    columns = [entries[start : start + tall] for start in range(0, len(entries), max(tall, 1))]
    return ["".join(f"{entry:{wide}}" for entry in row).rstrip() for row in zip_longest(*columns, fillvalue="")]
