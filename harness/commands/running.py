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

from autograd_conformance.harness import alone, baseline, exports, gate, report, smoke
from autograd_conformance.harness.alone import PACKAGE
from autograd_conformance.harness.baseline import Baseline
from autograd_conformance.harness.commands import USAGE, Problem
from autograd_conformance.harness.commands.gating import hold
from autograd_conformance.harness.commands.showing import export, export_options
from autograd_conformance.harness.memory import default_limit
from autograd_conformance.harness.outcomes import UsageProblem
from autograd_conformance.harness.plugin import TIME_LIMIT
from autograd_conformance.harness.profiles import PROFILES
from autograd_conformance.harness.selection import Selection
from autograd_conformance.reference.definitions import FLOATING

_PYTEST = (*alone.WORDS, "--progress", "-o", "console_output_style=classic")
_XDIST = ("-p", "xdist", "--dist=worksteal", "--max-worker-restart=1000")


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
@click.option("--tx", multiple=True, metavar="SPEC",
              help="Workers on other interpreters instead, as in 2*popen//python=python3.12; repeatable.")  # fmt: skip
@click.option("--shard", metavar="I/N", help="Run part I of N of the test ids; see merge.")
@click.option("--balance", metavar="FILE", help="Report of an earlier run by whose durations shards are balanced.")
@click.option("--time-limit", type=click.FloatRange(1), default=TIME_LIMIT, show_default=True, metavar="S",
              help="Seconds that one test may take.")  # fmt: skip
@click.option("--memory-limit", type=click.FloatRange(0.1), metavar="GIB",
              help="Memory that one worker may use; default: its share of 80 % of this machine's.")  # fmt: skip
@click.option("--report", "report_", metavar="FILE", help=f"Report to write; default: {report.DEFAULT_PATH}.")
@click.option("--baseline", "baseline_", type=click.Path(path_type=Path), metavar="FILE",
              help="Baseline to hold the run against: the exit status says whether anything is worse.")  # fmt: skip
@click.option("--replay", metavar="FILE",
              help=f"Report or corpus to replay with --profile replay; default: {report.DEFAULT_PATH}.")  # fmt: skip
@click.option("--corpus", metavar="FILE", help='What was kept with "keep"; it is run before what is drawn.')
@click.option("--cost", is_flag=True, help="Measure what a call costs, too; see compare --cost.")
@click.option("--expect", metavar="NAME[==VERSION]|FILE.json",
              help="The fork that has to be imported: its distribution, or pip's report of installing it.")  # fmt: skip
@click.option("--database", metavar="DIR|redis://HOST:PORT/DB",
              help="Where random profiles keep what failed, and find it again.")  # fmt: skip
@export_options
@click.argument("pytest_args", nargs=-1, type=click.UNPROCESSED)
def run(
    suite: str | None, workers: int, tx: tuple[str, ...], report_: str | None, baseline_: Path | None,
    pytest_args: tuple[str, ...], **options: Any,
) -> None:  # fmt: skip
    """Check IMPLEMENTATION (default: torch). What follows "--" goes to pytest."""
    # Click gives the first word after "--" to IMPLEMENTATION when none was named.
    if options["implementation"].startswith("-"):
        pytest_args, options["implementation"] = (options["implementation"], *pytest_args), "torch"
    if report_ is None and options["profile"] != "replay":
        report_ = report.DEFAULT_PATH
    options["memory_limit"] = options["memory_limit"] or default_limit(sum(map(_count, tx)) or workers)
    targets = exports.chosen({way: options.pop(way) for way in exports.WAYS})
    given = {**options, "report": report_}
    try:
        parallel, tests = _parallel(workers, tx, pytest_args), _tests(suite)
        places = _places(tests, tx)
        base = _baseline(baseline_, report_)
        if options["cost"] and options["shard"]:
            raise UsageProblem(f"--cost is measured once a run, and does not go with --shard {options['shard']}")
        selection = Selection.from_options(
            SimpleNamespace(**given, file_or_dir=[str(tests)]), before_loading=smoke.verify
        )
        if base is not None:
            _verify_comparable(base, selection, baseline_)
        if report_ is not None:
            report.check_path(Path(report_))
        exports.check(targets, report_, {"the baseline": baseline_})
    except UsageProblem as problem:
        raise Problem(str(problem)) from None
    if options["cost"]:
        click.echo("measuring what a call costs, in a few processes")
    if selection.replays and not selection.kept:
        click.echo(f"nothing to replay: {options['replay'] or report.DEFAULT_PATH} holds no counterexample")
        return
    alone.leave_environment()
    before = _last_change(report_)
    try:
        status = pytest.main([*_PYTEST, *_words(given), *parallel, *pytest_args, *places])
    except KeyboardInterrupt:  # too early or too late for pytest
        status = pytest.ExitCode.INTERRUPTED
    # A run that was refused has no report of its own; what lies there is another's.
    if report_ is not None and _last_change(report_) != before:
        export(Path(report_), targets)
    if base is not None and baseline_ is not None and report_ is not None:
        # What lies there after a run that did not end may be an earlier one's.
        if _status(status) == USAGE or _last_change(report_) == before:
            raise Problem("the gate cannot pass: the run did not come to an end; it says why")
        sys.exit(hold(base, baseline_, Path(report_)))
    sys.exit(_status(status))


def _baseline(path: Path | None, report_: str | None) -> Baseline | None:
    """The baseline to hold the run against. Raises UsageProblem for one that cannot be, before anything is run."""
    if path is None:
        return None
    if report_ is None:
        raise UsageProblem(f"--baseline {path} does not go with --profile replay, which runs what failed once")
    if Path(report_).resolve() == path.resolve():
        raise UsageProblem(f"--report {report_} would overwrite the baseline")
    return baseline.read(path)


def _verify_comparable(base: Baseline, selection: Selection, path: Path | None) -> None:
    if selection.shard is not None:
        raise UsageProblem(
            f"--baseline {path} does not go with --shard {selection.shard}; put the shards together with merge, and "
            "hold the whole against the baseline with compare"
        )
    gate.verify_alike(base, baseline.parameters(report.header(selection, None)), where=str(path))


def _last_change(path: str | None) -> int | None:
    return Path(path).stat().st_mtime_ns if path is not None and Path(path).exists() else None


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


def _places(tests: Path, tx: Sequence[str]) -> Sequence[str]:
    """How pytest is told of the tests. Raises UsageProblem for those that another machine cannot have."""
    if all("popen" in spec for spec in tx):
        return *alone.INSIDE, str(tests)
    if not tests.is_relative_to(PACKAGE):
        raise UsageProblem(f"--suite {tests} is on this machine alone; let --tx start popen workers, or leave it out")
    module = ("autograd_conformance", *tests.relative_to(PACKAGE).with_suffix("").parts)
    return "--noconftest", "--pyargs", ".".join(module)


def _words(options: dict[str, Any]) -> list[str]:
    """The options as pytest's command line has them."""
    named = {f"--{name.replace('_', '-')}": value for name, value in options.items()}
    return [n if v is True else f"{n}={v}" for n, v in named.items() if v is not None and v is not False]


def _parallel(workers: int, tx: Sequence[str], pytest_args: Sequence[str]) -> Sequence[str]:
    """How pytest is told of its workers. Raises UsageProblem where that is said twice."""
    if any(word.split("=")[0] in ("--tx", "--numprocesses") for word in pytest_args):
        raise UsageProblem('give -n or --tx before "--": the workers are not pytest\'s alone')
    if not tx:
        return (*_XDIST, f"--numprocesses={workers}") if workers else ()
    source = click.get_current_context().get_parameter_source("workers")
    if source is not click.core.ParameterSource.DEFAULT:
        raise UsageProblem(f"-n {workers} and --tx {tx[0]} exclude each other; --tx says how many, as in 2*popen")
    return (*_XDIST, *(f"--tx={spec}" for spec in tx))


def _count(spec: str) -> int:
    """How many workers ``--tx`` asks for."""
    number, _, rest = spec.partition("*")
    return int(number) if rest and number.isdigit() else 1


def _status(code: int) -> int:
    return int(code) if code in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED) else USAGE
