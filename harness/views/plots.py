"""Errors against their bounds: the largest error of each property, run and dtype, on a logarithmic axis."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from autograd_conformance.harness.reports.reading import Report
from autograd_conformance.reference.definitions import FLOATING
from autograd_conformance.reference.properties import PROPERTIES

# The ends of the axis, as powers of ten; values beyond them are drawn at the end.
LEAST, MOST = -3, 1

# Percent of the width left free at either end.
_MARGIN = 4


@dataclass(frozen=True)
class Dot:
    """The largest error of a dtype in units of its bound, and the Function that has it."""

    dtype: str
    ratio: float
    function: str

    @property
    def lane(self) -> int:
        """The row of the dot: one for each dtype, so that dots never hide each other."""
        return FLOATING.index(self.dtype)

    @property
    def x(self) -> float:
        """The place on the axis, in percent."""
        return place(self.ratio)

    @property
    def text(self) -> str:
        """The ratio in a few digits."""
        return f"{self.ratio:.2g}" if self.ratio else "0"


@dataclass(frozen=True)
class Row:
    """The dots of one report."""

    report: Report
    dots: tuple[Dot, ...]

    def of(self, dtype: str) -> Dot | None:
        """The dot of a dtype; None if nothing was computed in it."""
        return next((dot for dot in self.dots if dot.dtype == dtype), None)


@dataclass(frozen=True)
class Plot:
    """One property, with a row for each report that has errors of it."""

    property_id: str
    sentence: str
    rows: tuple[Row, ...]


def place(ratio: float) -> float:
    """The place of a ratio on the axis, in percent of its width."""
    power = min(max(math.log10(ratio), LEAST), MOST) if ratio > 0 else LEAST
    return round(_MARGIN + (100 - 2 * _MARGIN) * (power - LEAST) / (MOST - LEAST), 1)


def ticks() -> list[tuple[float, str]]:
    """The powers of ten on the axis, with their places."""
    texts = {LEAST: f"≤ {10.0**LEAST:g}", 0: "bound", MOST: f"≥ {10.0**MOST:g}"}
    return [(place(10.0**power), texts.get(power, f"{10.0**power:g}")) for power in range(LEAST, MOST + 1)]


def plots(reports: Sequence[Report]) -> list[Plot]:
    """A plot of each property that has errors in the reports."""
    found = []
    for one in PROPERTIES.values():
        rows = tuple(Row(report, dots) for report in reports if (dots := _dots(report, one.id)))
        found += [Plot(one.id, one.sentence, rows)] if rows else []
    return found


def _dots(report: Report, property_id: str) -> tuple[Dot, ...]:
    worst: dict[str, Dot] = {}
    for line in report.by_claim.get(property_id, ()):
        for dtype, ratio in line.get("worst_by_dtype", {}).items():
            if dtype not in worst or ratio > worst[dtype].ratio:
                worst[dtype] = Dot(dtype, ratio, line["function"])
    return tuple(worst[dtype] for dtype in FLOATING if dtype in worst)
