"""Records what implementations do where they claim nothing, for the page of findings.

``python benchmarks/unclaimed.py REPORT...`` writes ``implementations/unclaimed/NAME.txt`` from reports of complete runs
with workers: the test ids that are silent or die, each with what is wrong. They have the same examples in every run.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from autograd_conformance.harness.reports import ndjson
from autograd_conformance.harness.reports.ndjson import Line
from autograd_conformance.harness.reports.reading import place
from autograd_conformance.harness.views.findings import RECORDED


def rows(lines: Sequence[Line]) -> list[str]:
    """The lines of the file, given those of a report."""
    about = lines[0]["implementation"]
    found = [line for line in lines[1:-1] if line["outcome"] in ("silent", "dies")]
    return [f"# {about['name']} {about['version']}", *map(_row, sorted(found, key=place))]


def _row(line: Line) -> str:
    failure = line["failure"]
    what = failure.get("component", {}).get("what") or failure.get("what") or failure["message"]
    return f"{line['id']}  {line['outcome']}  {' '.join(what.split())}"


def main(paths: Sequence[str]) -> int:
    """Write the files."""
    for path in map(Path, paths):
        lines = ndjson.read(path)
        flaw = ndjson.flaw(lines)
        if flaw is not None or any(lines[0]["options"].values()):
            print(f"{path} is not the report of a complete run: {flaw or 'it left out tests'}", file=sys.stderr)
            return 2
        (RECORDED / f"{lines[0]['implementation']['name']}.txt").write_text(
            "".join(f"{row}\n" for row in rows(lines)), encoding="utf-8"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
