"""Looks for what nobody has seen: new seeds of a quick run and, with new seeds, right Functions.

Nobody's commit depends on it. Each round prints its seed, and for each failure the command that repeats it. What it
finds becomes a test with that seed, or an entry of a corpus (`autograd-conformance keep`). The exit status is 1 if it
found something, 2 if a run said nothing.
"""

from __future__ import annotations

import argparse
import json
import random
import secrets
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from autograd_conformance.benchmarks.accused import RIGHT, said
from autograd_conformance.harness.outcomes import FAILING

HOLDS, FOUND, NOTHING_SAID = 0, 1, 2
# Right Functions of one round.
_SAMPLE = 12


def main() -> int:
    """Explore for some minutes. Returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10, help="no round begins after so many minutes (default: 10)")
    parser.add_argument("--seed", type=int, help="begin with this seed, to repeat a round; default: a random one")
    parser.add_argument("--implementation", default="torch", help="the implementation of the quick runs")
    given = parser.parse_args()
    seed, until, statuses = given.seed, time.monotonic() + 60 * given.minutes, set()
    while not statuses or time.monotonic() < until:
        seed = secrets.randbelow(2**31) if seed is None else seed
        print(f"seed {seed}", flush=True)
        statuses |= {quick(given.implementation, seed), right(seed)}
        seed = None
    print("nothing was found" if statuses == {HOLDS} else "something was found; see above")
    return NOTHING_SAID if NOTHING_SAID in statuses else max(statuses)


def quick(implementation: str, seed: int) -> int:
    """A quick run with this seed; its report stays if something fails."""
    report = Path(f"explore-{seed}.ndjson")
    words = ("autograd-conformance", "run", implementation, "--profile", "quick", "--seed", str(seed))
    done = subprocess.run([*words, "--report", str(report)], capture_output=True, text=True, check=False)
    if done.returncode == HOLDS:
        report.unlink()
        return HOLDS
    if done.returncode != FOUND:
        print(done.stderr)
        return NOTHING_SAID
    for line in _failures(report):
        functions = ["--functions", line["function"]] if "function" in line else []
        about = line.get("property") or line["clause"]
        print(f"{line['outcome']}: {line['id']}\n  {' '.join([*words, '--properties', about, *functions])}")
    print(f"  to keep them: autograd-conformance keep {report}")
    return FOUND


def _failures(report: Path) -> Iterator[dict[str, str]]:
    lines = map(json.loads, report.read_text(encoding="utf-8").splitlines())
    return (line for line in lines if line["kind"] == "result" and line["outcome"] in FAILING)


def right(seed: int) -> int:
    """Some right Functions, which must not be accused."""
    faults = {name: said(name, "quick", seed)[0] for name in random.Random(seed).sample(sorted(RIGHT), _SAMPLE)}
    for name in filter(faults.get, faults):
        print("\n".join(faults[name]))
        print(f"  python benchmarks/accused.py --profile quick --first {seed} --seeds 1 --only {name}")
    return FOUND if any(faults.values()) else HOLDS


if __name__ == "__main__":
    sys.exit(main())
