"""What the selftests cost: a table of CPU seconds by group of tests, of the processes and of their children.

Where the clock shows much more than the CPU, a group waits.

Run `python benchmarks/selftests.py`, perhaps with arguments of pytest after it, such as `--nightly` or `-n 1`.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

from tabulate import tabulate

from autograd_conformance.selftests.costs import Cost, group

# Groups that need less are one row.
_LEAST = 8.0


def main() -> int:
    """Run the selftests and print the table. Returns pytest's exit status."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "costs.json")
        words = sys.argv[1:] or ["-n", "2"]
        done = subprocess.run(["pytest", "selftests", "-W", "error", "--costs", str(path), *words], check=False)
        tests = {id: Cost(*cost) for id, cost in json.loads(path.read_text(encoding="utf-8")).items()}
    groups: dict[str, list[Cost]] = defaultdict(list)
    for id, cost in tests.items():
        groups[group(id)].append(cost)
    small = [name for name, each in groups.items() if sum(cost.whole for cost in each) < _LEAST]
    groups[f"{len(small)} others"] = [cost for name in small for cost in groups.pop(name)]
    rows = sorted((_row(name, each) for name, each in groups.items()), key=lambda row: -row[2])
    rows.append(_row("all", list(tests.values())))
    print(tabulate(rows, ("group", "tests", "CPU s", "in children", "by the clock"), "pipe"))
    return done.returncode


def _row(name: str, costs: list[Cost]) -> tuple[str, int, float, float, float]:
    columns = (lambda cost: cost.whole, lambda cost: cost.children, lambda cost: cost.clock)
    whole, children, clock = (round(sum(map(column, costs))) for column in columns)
    return name, len(costs), whole, children, clock


if __name__ == "__main__":
    sys.exit(main())
