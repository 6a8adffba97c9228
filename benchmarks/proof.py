"""What reports say was tried: a digest of ids, outcomes and numbers of examples, the same for two runs of one commit.

Run `python benchmarks/proof.py REPORT...`. The selftests print their own digest, of ids and drawn examples.
"""

from __future__ import annotations

import argparse
import json
from hashlib import blake2b
from pathlib import Path

_OF_RESULT = ("id", "outcome", "examples", "checks", "inconclusive", "refused")


def main() -> None:
    """Print a line for each report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("reports", nargs="+", type=Path, metavar="REPORT")
    for report in parser.parse_args().reports:
        header, *rest = map(json.loads, report.read_text(encoding="utf-8").splitlines())
        results = sorted(tuple(str(line.get(name)) for name in _OF_RESULT) for line in rest if line["kind"] == "result")
        found = blake2b(repr((header["seed"], results)).encode(), digest_size=8).hexdigest()
        tried = sum(line.get("examples", 0) for line in rest)
        print(f"digest of {len(results)} ids and {tried} examples of {header['implementation']['name']}: {found}")


if __name__ == "__main__":
    main()
