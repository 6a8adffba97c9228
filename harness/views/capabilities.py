"""What an implementation does where it does not claim a capability."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from autograd_conformance.harness.outcomes import UNCLAIMED
from autograd_conformance.harness.reports.ndjson import Line
from autograd_conformance.implementations.protocol import CAPABILITIES


def unclaimed(results: Iterable[Line]) -> list[tuple[str | int, ...]]:
    """A row for each capability that is not claimed: its name, and how many test ids have each outcome.

    A test id that needs several of them counts for each.
    """
    found: dict[str, Counter[str]] = {}
    for line in results:
        for capability in line.get("unclaimed", ()):
            found.setdefault(capability, Counter())[line["outcome"]] += 1
    return [(name, *(found[name][each] for each in UNCLAIMED)) for name in CAPABILITIES if name in found]
