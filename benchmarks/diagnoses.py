"""What `check` says of every known fault of a user's Function: the golden file of its diagnosis.

``python benchmarks/diagnoses.py`` checks each wrong specimen, each planted fault as a user's Function and each page of
docs/faults, at a fixed seed, and compares what is said with diagnoses.txt; it ends with status 1 if anything differs.
``--write`` writes that file. ``--only WORDS`` takes the cases that have these words in their names.

Each case has a line for each result that is no plain pass: the test, the outcome and the verdict, and below it what it
follows from, with which change the call is right, the likely cause, the cure, and whether there is a script or why not.
The lines with ``#`` say how many CPU seconds a case took; they are not compared.
"""

from __future__ import annotations

import argparse
import difflib
import os
import re
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from importlib import util
from multiprocessing import TimeoutError, get_context
from pathlib import Path
from types import ModuleType
from typing import Any

from autograd_conformance.harness.check.report.grouping import headlines
from autograd_conformance.harness.check.report.verdicts import verdict
from autograd_conformance.harness.reports import ndjson
from autograd_conformance.selftests.check.checking import faults_in, lines_of
from autograd_conformance.selftests.check.test_own_planted import KNOWABLE, NUMBERS, declared, requested
from autograd_conformance.selftests.check.test_specimens import WRONG
from autograd_conformance.suites.declared import Checked

GOLDEN = Path(__file__).with_name("diagnoses.txt")
ROOT = Path(__file__).resolve().parent.parent
# The tests that find what follows from another fault only sometimes: which lengths are tried depends on how long a call
# takes, and threads meet as they like.
_UNSTEADY = ("/long", "ENV-THREADS")
# What differs from run to run: numbers of random or unwritten memory, and what such a number looks like.
_BY_CHANCE = ("VJP-REPEAT", "MEM-WRITTEN")
_ERROR = re.compile(r"(?<=relative error )\S+")
# So long may one case take.
_SECONDS = 300
# Why a specimen or planted fault has no script: it is made in a function.
_UNNAMED = "neither the Function nor its declaration is a global name"

# What is checked, and the result lines of its tests.
Case = tuple[Checked, Iterable[ndjson.Line]]


def _specimen(name: str) -> Case:
    specimen = WRONG[name]
    checked = Checked(specimen.declaration, profile=specimen.profile, seed=specimen.seed, shrink=specimen.shrink)
    return checked, lines_of(checked, *specimen.tests) if specimen.tests else checked.lines()


def _planted(number: int) -> Case:
    planted = KNOWABLE[number]
    checked = Checked(declared(planted.wrong.function, requested(planted.id)), seed=0)
    return checked, checked.lines(planted.id, *NUMBERS)


def _recorder() -> ModuleType:
    """docs/faults/record.py, which reads the pages."""
    spec = util.spec_from_file_location("record", ROOT / "docs" / "faults" / "record.py")
    assert spec
    assert spec.loader
    module = util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _page(name: str) -> Case:
    recorder = _recorder()
    checked = Checked(recorder.loaded(name).faulty, seed=0)
    return checked, checked.lines(*filter(None, [recorder.property_of(name)]))


def cases() -> Iterator[tuple[str, Callable[[], Case]]]:
    """Each case by its name, with what checks it."""
    yield from ((f"specimen {name}", partial(_specimen, name)) for name in WRONG)
    yield from ((f"planted {planted}", partial(_planted, n)) for n, planted in enumerate(KNOWABLE))
    recorder = _recorder()
    # What ends the process has no result in this one.
    pages = (name for name in recorder.names() if name not in ("crashes", "hangs"))
    yield from ((f"page {name}", partial(_page, name)) for name in pages if hasattr(recorder.loaded(name), "faulty"))


def said(named: tuple[str, Callable[[], Case]]) -> list[str]:
    """What is said of a case, in lines."""
    name, case = named
    started = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        checked, lines = case()
        found = list(lines)
    took = time.process_time() - started
    facts = checked.selection.functions[0].facts
    known = [f"  stale: {each}" for each in facts.stale]
    known += [f"  coarse: {each}" for each in facts.coarse]
    known += [f"  declined: {each.why} ({', '.join(each.shown)})" for each in facts.declined]
    heads = [line["id"] for line in headlines(list(faults_in(found)))]
    return [name, f"# {took:.1f} s", *known, *(text for line in found for text in _told(line, heads)), ""]


def _told(line: ndjson.Line, heads: list[str]) -> Iterator[str]:
    """The lines about one result."""
    judged, failure = verdict(line), line.get("failure", {})
    if judged is None:
        return
    head = " (headline)" if line["id"] in heads else ""
    if not head and ndjson.test_of(line).endswith(_UNSTEADY):
        return
    word = "by chance" if judged.follows in _BY_CHANCE else judged.word
    yield f"  {ndjson.test_of(line)}: {line['outcome']}, {word}{head}"
    told = {"follows": judged.follows, "right_with": failure.get("right_with", "")}
    told |= {"guess": judged.guess, "advice": judged.advice}
    told |= {"likely": failure.get("likely", "")} if judged.guess != failure.get("likely") else {}
    script = "made" if "script" in failure else failure.get("no_script", "")
    told |= {} if script.startswith(_UNNAMED) else {"script": script}
    told |= {"guess": ""} if judged.follows in _BY_CHANCE else {}
    yield from (f"    {name}: {_ERROR.sub('#', words)}" for name, words in told.items() if words)


def compared(found: list[str], kept: list[str]) -> list[str]:
    """The lines that differ, without those of the time."""
    mine, theirs = ([line for line in lines if not line.startswith("#")] for lines in (found, kept))
    return list(difflib.unified_diff(theirs, mine, "kept", "found", n=3, lineterm=""))


def _answer(results: Any, name: str) -> list[str]:
    """The lines of the next case. If it gives none, as one that ends its process, the program ends with status 2."""
    try:
        return results.next(_SECONDS)  # type: ignore[no-any-return]
    except TimeoutError:
        print(f"{name}: no answer in {_SECONDS} s; its process died, or it hangs", file=sys.stderr)
        sys.exit(2)


def main() -> int:
    """Compare, or write."""
    parser = argparse.ArgumentParser(description="what `check` says of every known fault of a user's Function")
    way = parser.add_mutually_exclusive_group()
    way.add_argument("--write", action="store_true", help="write diagnoses.txt")
    way.add_argument("--only", default="", help="print what is said of the cases with these words")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="so many at a time; default: one a core")
    given = parser.parse_args()
    chosen = [case for case in cases() if given.only in case[0]]
    if not chosen:
        parser.error(f"--only must be words of a case in {GOLDEN.name}, got {given.only}")
    # A process for each case: what one leaves behind is not seen by the next one.
    with get_context("fork").Pool(max(given.jobs, 1), maxtasksperchild=1) as pool:
        results = pool.imap(said, chosen)
        found = [line for name, _ in chosen for line in _answer(results, name)]
    total = sum(float(line.split()[1]) for line in found if line.startswith("#"))
    print(f"{len(chosen)} cases, {total:.0f} CPU s", file=sys.stderr)
    if given.only:
        print("\n".join(found))
        return 0
    if given.write:
        GOLDEN.write_text("\n".join(found) + "\n", encoding="utf-8")
        return 0
    differences = compared(found, GOLDEN.read_text(encoding="utf-8").splitlines())
    if differences:
        print("\n".join(differences))
    return bool(differences)


if __name__ == "__main__":
    sys.exit(main())
