"""What the start of a shard costs, next to its tests: CPU seconds of all processes, at 64 shards.

Run `python benchmarks/start.py`, perhaps with `--implementation NAME`, `--shards 5,20,41` or `--workers 0,1,2`.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

_COMMAND = (sys.executable, "-c", "from autograd_conformance.harness.program import main; main()", "run")


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _measured(implementation: str, shard: str, workers: str) -> tuple[float, float]:
    """The CPU seconds of a run, and those of its tests."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "r.ndjson")
        before = _children()
        words = (implementation, "--shard", f"{shard}/64", "-n", workers, "--report", str(report))
        subprocess.run([*_COMMAND, *words], stdout=subprocess.DEVNULL, check=False)
        whole = _children() - before
        lines = map(json.loads, report.read_text(encoding="utf-8").splitlines())
        return whole, sum(line["seconds"] for line in lines if line["kind"] == "result")


def main() -> None:
    """Print a row for each number of workers."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--implementation", default="torch")
    parser.add_argument("--shards", default="5,20,41")
    parser.add_argument("--workers", default="0,1,2")
    given = parser.parse_args()
    # Compiles what is not compiled yet.
    _measured(given.implementation, "1", "0")
    print("| workers | whole run | tests | start and end |\n| --- | --- | --- | --- |")
    for workers in given.workers.split(","):
        found = [_measured(given.implementation, shard, workers) for shard in given.shards.split(",")]
        whole, tests = (statistics.mean(column) for column in zip(*found, strict=True))
        print(f"| {workers} | {whole:.1f} | {tests:.1f} | {whole - tests:.1f} |")


if __name__ == "__main__":
    main()
