"""``autograd-conformance run``: check an implementation."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click
import pytest

from autograd_conformance.harness import report, smoke
from autograd_conformance.harness.commands import USAGE, Problem
from autograd_conformance.harness.memory import default_limit
from autograd_conformance.harness.outcomes import UsageProblem
from autograd_conformance.harness.plugin import TIME_LIMIT
from autograd_conformance.harness.profiles import PROFILES
from autograd_conformance.harness.selection import Selection
from autograd_conformance.reference.definitions import FLOATING

PACKAGE = Path(__file__).resolve().parents[2]

# Nothing of the user's pytest configuration takes part: no ini file, no plugins but these, no conftest from outside.
_PYTEST = (
    "-c", os.devnull, f"--rootdir={PACKAGE}", f"--confcutdir={PACKAGE}", "--import-mode=importlib",
    "-p", "hypothesispytest", "-p", "autograd_conformance.harness.plugin", "-p", "no:cacheprovider",
    "-q", "--tb=no", "-rN", "--disable-warnings", "-W", "ignore::pytest.PytestAssertRewriteWarning",
)  # fmt: skip
_XDIST = ("-p", "xdist", "--dist=worksteal", "--max-worker-restart=1000")

# Workers share the cores; a framework that starts a thread for each of them in every worker is slower.
_ENVIRONMENT = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@click.command()
@click.argument("implementation", default="torch")
@click.option("--functions", metavar="PATTERN", help="Functions to check: names or globs, comma-separated.")
@click.option("--properties", metavar="PATTERN", help="Properties and clauses to check: ids or globs, comma-separated.")
@click.option("--suite", metavar="PATH", help="Folder or file of tests to run instead of the whole suite.")
@click.option("--profile", default="gate", show_default=True, metavar="|".join(PROFILES), help="How thoroughly.")
@click.option("--seed", type=click.IntRange(0), metavar="N", help="Seed of the examples.")
@click.option("--device", metavar="D", help="The only device to run on; default: every one there is.")
@click.option("--dtype", metavar="|".join(FLOATING), help="The only dtype of floating tensors.")
@click.option("-n", "--workers", type=click.IntRange(0), default=_cores, show_default="all cores", metavar="N",
              help="Processes to run tests in; 0 runs them in this one, where a crash ends the run.")  # fmt: skip
@click.option("--time-limit", type=click.FloatRange(1), default=TIME_LIMIT, show_default=True, metavar="S",
              help="Seconds that one test may take.")  # fmt: skip
@click.option("--memory-limit", type=click.FloatRange(0.1), metavar="GIB",
              help="Memory that one worker may use; default: its share of 80 % of this machine's.")  # fmt: skip
@click.option("--report", "report_", metavar="FILE", help=f"Report to write; default: {report.DEFAULT_PATH}.")
@click.option("--replay", metavar="FILE",
              help=f"Report to replay with --profile replay; default: {report.DEFAULT_PATH}.")  # fmt: skip
@click.argument("pytest_args", nargs=-1, type=click.UNPROCESSED)
def run(suite: str | None, workers: int, report_: str | None, pytest_args: tuple[str, ...], **options: Any) -> None:
    """Check IMPLEMENTATION (default: torch). What follows "--" goes to pytest."""
    # Click gives the first word after "--" to IMPLEMENTATION when none was named.
    if options["implementation"].startswith("-"):
        pytest_args, options["implementation"] = (options["implementation"], *pytest_args), "torch"
    if report_ is None and options["profile"] != "replay":
        report_ = report.DEFAULT_PATH
    options["memory_limit"] = options["memory_limit"] or default_limit(workers)
    given = {**options, "report": report_}
    try:
        selection = Selection.from_options(SimpleNamespace(**given), before_loading=smoke.verify)
        if report_ is not None:
            report.check_path(Path(report_))
        tests = _tests(suite)
    except UsageProblem as problem:
        raise Problem(str(problem)) from None
    if selection.calls == {}:
        click.echo("nothing to replay: the report holds no failure")
        return
    os.environ.update(_ENVIRONMENT)
    os.environ.pop("PYTEST_ADDOPTS", None)
    try:
        status = pytest.main([*_PYTEST, *_words(given), "--verified", *_parallel(workers), *pytest_args, str(tests)])
    except KeyboardInterrupt:  # too early or too late for pytest
        status = pytest.ExitCode.INTERRUPTED
    sys.exit(_status(status))


def _tests(suite: str | None) -> Path:
    """The tests to run: the whole suite, a part of it, or others."""
    whole = PACKAGE / "suites"
    if suite is None:
        return whole
    for place in (Path(suite), whole / suite):
        if place.exists():
            return place.resolve()
    parts = ", ".join(sorted(path.name for path in whole.iterdir() if path.is_dir() and path.name[0] not in "_."))
    raise UsageProblem(f"there is no suite {suite!r}; give a path, or choose from: {parts}")


def _words(options: dict[str, Any]) -> list[str]:
    """The options as pytest's command line has them."""
    named = {name.replace("_", "-"): value for name, value in options.items() if value is not None}
    return [f"--{name}={value}" for name, value in named.items()]


def _parallel(workers: int) -> Sequence[str]:
    return (*_XDIST, f"--numprocesses={workers}") if workers else ()


def _status(code: int) -> int:
    return int(code) if code in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED) else USAGE
