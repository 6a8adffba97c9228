"""Right Functions, checked with several seeds: whatever is said against one of them is a mistake of the suite.

They are the custom Functions of ``selftests/check/specimens/fields``, and torch's own functions.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from fnmatch import fnmatch
from multiprocessing import get_context

import torch

from autograd_conformance.harness.check.report.verdicts import judged
from autograd_conformance.harness.outcomes import UsageProblem
from autograd_conformance.selftests.check.specimens.builtins import BUILTINS
from autograd_conformance.selftests.check.specimens.fields import DECLARATIONS
from autograd_conformance.suites.declared import Checked

RIGHT = {**DECLARATIONS, **BUILTINS}


def said(name: str, profile: str, seed: int) -> tuple[list[str], list[str]]:
    """What is said against a right Function, and what could not be verified of it."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    declaration = RIGHT[name]
    try:
        lines = list(Checked(declaration, profile=profile, seed=seed).lines())
    except UsageProblem as problem:
        return [f"{name}: seed {seed}: {problem}"], []
    faults, notes = [], []
    for line, verdict in judged(lines, compared=declaration.reference is not None and not declaration.surrogate):
        text = f"{name}: seed {seed}: {line['id']}: "
        if verdict is not None and verdict.fault:
            failure = line.get("failure", {})
            found = ", ".join(f"{k}: {failure[k]}" for k in ("message", "call", "hint") if failure.get(k))
            faults.append(f"{text}{verdict.word}: {found}")
        elif verdict is not None:
            notes.append(f"{text}{verdict.word}: {line.get('reason', '')}")
    return faults, notes


def _each(tasks: list[tuple[str, str, int]], workers: int) -> Iterator[tuple[list[str], list[str]]]:
    if workers < 2:
        yield from (said(*task) for task in tasks)
        return
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        yield from pool.map(said, *zip(*tasks, strict=True))


def main() -> int:
    """Check them. 1 if any is accused."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--profile", choices=("quick", "gate"), default="gate")
    options.add_argument("--seeds", type=int, default=5, help="how many seeds, from --first on")
    options.add_argument("--first", type=int, default=0)
    options.add_argument("--only", default="*", help="a glob of the names")
    options.add_argument("--workers", type=int, default=2)
    options.add_argument("--notes", action="store_true", help="also print what could not be verified")
    given = options.parse_args()
    names = [name for name in RIGHT if fnmatch(name, given.only)]
    seeds = range(given.first, given.first + given.seeds)
    tasks = [(name, given.profile, seed) for seed in seeds for name in names]
    accused = set()
    for (name, _, _), (faults, notes) in zip(tasks, _each(tasks, given.workers), strict=True):
        accused.update([name] if faults else [])
        for text in (*faults, *(notes if given.notes else ())):
            print(text, flush=True)
    print(f"{len(names)} Functions, {given.seeds} seeds, {len(accused)} accused")
    return int(bool(accused))


if __name__ == "__main__":
    sys.exit(main())
