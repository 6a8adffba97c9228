"""How much a run asked of an implementation: the adapter's claims, and the examples, checks and dtypes of a test id."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from autograd_conformance.harness.reports.ndjson import Line

# The dtypes of floating tensors, as a baseline writes them.
SHORT = {
    "float64": "f64", "float32": "f32", "float16": "f16", "bfloat16": "bf16", "complex128": "c128", "complex64": "c64",
}  # fmt: skip
_LONG = {short: name for name, short in SHORT.items()}

_TEXT = re.compile(r"(?P<examples>\d+)/(?P<checks>\d+)(?P<dtypes>(?: \S+)*)")

# Outcomes of a test id all of whose examples were run: a failure ends a test early, wherever it is found.
_TO_THE_END = frozenset(("pass", "emulated"))

# Draws with another seed, or for an adapter that claims a dtype more, differ by a few examples and checks.
_FEW = 5


class Asked(NamedTuple):
    """How much a test id was asked: its examples, its conclusive checks, and the dtypes that it draws from."""

    examples: int
    checks: int
    dtypes: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.examples} examples and {self.checks} checks in {', '.join(self.dtypes) or 'no dtype'}"


def of_line(line: Line) -> Asked | None:
    """How much the test id of a result was asked; None if it was not run, or did not end."""
    if "dtypes" not in line:
        return None
    return Asked(line["examples"], line["checks"] - line["inconclusive"], tuple(line["dtypes"]))


def text(asked: Asked) -> str:
    """The text in a baseline, as ``25/150 f64 f32``."""
    return " ".join((f"{asked.examples}/{asked.checks}", *(SHORT.get(dtype, dtype) for dtype in asked.dtypes)))


def parsed(written: str) -> Asked | None:
    """What such a text says; None for other texts."""
    found = _TEXT.fullmatch(written)
    if found is None:
        return None
    dtypes = tuple(_LONG.get(dtype, dtype) for dtype in found["dtypes"].split())
    return Asked(int(found["examples"]), int(found["checks"]), dtypes)


def less(old: tuple[str, Asked | None], new: tuple[str, Asked | None]) -> Iterator[str]:
    """What a test id is not asked any more, given its outcome and how much it was asked before and now."""
    (before, was), (after, now) = old, new
    if was is None or now is None:
        return
    lost = [dtype for dtype in was.dtypes if dtype not in now.dtypes]
    if lost:
        yield f"without {', '.join(lost)}"
    if {before, after} <= _TO_THE_END:
        if _most_are_gone(was.examples, now.examples):
            yield "with less than a quarter of the examples"
        if _most_are_gone(was.checks, now.checks):
            yield "with less than a quarter of the checks"


def _most_are_gone(before: int, now: int) -> bool:
    # The checks of an example differ: two seeds gave up to four times as many to an id with few of them.
    return 4 * now < before and before - now > _FEW


def claims(header: Line) -> frozenset[str]:
    """The adapter's claims in the header of a report."""
    return frozenset(header["claims"])
