"""The verdict of the released PyTorch that the documentation prints, taken from the baseline that comes with the suite.

``python benchmarks/figures.py`` writes it into the pages again after the baseline has changed.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from pathlib import Path

from autograd_conformance.harness.catalogue import PACKAGE
from autograd_conformance.harness.reports import baseline
from autograd_conformance.harness.views import describe

BASELINE = PACKAGE / "implementations" / "baselines" / "torch-2.13.0.txt"
PAGES = ("README.md", "docs/guide/getting-started.md", "docs/guide/reading-the-output.md")

_VERDICT = re.compile(r"^torch 2\.\S+: \d+ of \d+ test ids hold.*$", re.MULTILINE)


def verdict() -> str:
    """The last line of a run that has the outcomes of the baseline."""
    base = baseline.read(BASELINE)
    counts = Counter(entry.outcome for entry in base.entries.values())
    return f"torch {base.version}: {describe.counts(counts)}"


def pages() -> dict[Path, str]:
    """The text of each page with the verdict of the baseline."""
    texts = {PACKAGE / page: (PACKAGE / page).read_text("utf-8") for page in PAGES}
    return {page: _VERDICT.sub(verdict(), text) for page, text in texts.items()}


def main() -> int:
    """Write the pages."""
    for page, text in pages().items():
        page.write_text(text, encoding="utf-8")
    print(verdict())
    return 0


if __name__ == "__main__":
    sys.exit(main())
