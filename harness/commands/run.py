"""``autograd-conformance run``: check an implementation."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click
import pytest

from autograd_conformance.harness.catalogue import PACKAGE, SUITES
from autograd_conformance.harness.checking.profiles import PROFILES
from autograd_conformance.harness.commands import USAGE, Problem
from autograd_conformance.harness.commands.gate import compare_with_baseline
from autograd_conformance.harness.commands.report import export, export_options
from autograd_conformance.harness.outcomes import UsageProblem
from autograd_conformance.harness.reports import baseline, gate, ndjson
from autograd_conformance.harness.reports.baseline import Baseline
from autograd_conformance.harness.running import header, isolation, smoke, worker_specs
from autograd_conformance.harness.running.memory import default_limit
from autograd_conformance.harness.running.plugin import TIME_LIMIT
from autograd_conformance.harness.running.selection import Selection
from autograd_conformance.harness.running.supervision import supervised
from autograd_conformance.harness.views import exports
from autograd_conformance.reference.definitions import FLOATING

_PYTEST = (*isolation.ARGUMENTS, "--progress", "-o", "console_output_style=classic")
_XDIST = ("-p", "xdist", "--dist=worksteal", "--max-worker-restart=1000")


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@click.command()
@click.argument("implementation", default="torch")
@click.option("--functions", metavar="PATTERN", help="Functions to check: names or globs, comma-separated.")
@click.option("--properties", metavar="PATTERN", help="Properties and clauses to check: ids or globs, comma-separated.")
@click.option("--suite", metavar="PATH", help="Folder or file of tests to run instead of the complete suite.")
@click.option(
    "--profile", default="gate", show_default=True, metavar="|".join(PROFILES), help="How many examples to run."
)
@click.option("--seed", type=click.IntRange(0), metavar="N", help="Seed of the examples.")
@click.option("--device", metavar="D", help="Run only on this device; default: all devices.")
@click.option("--dtype", metavar="|".join(FLOATING), help="Use only this dtype for floating tensors.")
@click.option("-n", "--workers", type=click.IntRange(0), default=_cores, show_default="all cores", metavar="N",
              help="Number of worker processes; with 0 tests run in this one, and a crash ends the run.")  # fmt: skip
@click.option("--tx", multiple=True, metavar="SPEC",
              help="Use workers on other interpreters, as in 2*popen//python=python3.12; repeatable.")  # fmt: skip
@click.option("--shard", metavar="I/N", help="Run only part I of N of the test ids; see merge.")
@click.option("--balance", metavar="FILE", help="Balance the shards by the durations in this report of an earlier run.")
@click.option("--time-limit", type=click.FloatRange(1), default=TIME_LIMIT, show_default=True, metavar="S",
              help="Time limit of a test in seconds.")  # fmt: skip
@click.option("--memory-limit", type=click.FloatRange(0.1), metavar="GIB",
              help="Memory limit of a worker in GiB; default: its share of 80 % of this machine's memory.")  # fmt: skip
@click.option("--report", "report_", metavar="FILE", help=f"Report to write; default: {ndjson.DEFAULT_PATH}.")
@click.option("--baseline", "baseline_", type=click.Path(path_type=Path), metavar="FILE",
              help="Compare the run with this baseline; exit status 1 if something is worse.")  # fmt: skip
@click.option("--replay", metavar="FILE",
              help=f"Report or corpus to replay with --profile replay; default: {ndjson.DEFAULT_PATH}.")  # fmt: skip
@click.option(
    "--corpus", metavar="FILE", help="Run the counterexamples of this corpus before drawn examples; see keep."
)
@click.option("--cost", is_flag=True, help="Also measure the cost of a call; see compare --cost.")
@click.option("--expect", metavar="NAME[==VERSION]|FILE.json",
              help="Verify that this fork is imported; give its distribution, or pip's report.")  # fmt: skip
@click.option("--database", metavar="DIR|redis://HOST:PORT/DB",
              help="Where random profiles keep failing examples, to run them first next time.")  # fmt: skip
@export_options
@click.argument("pytest_args", nargs=-1, type=click.UNPROCESSED)
def run(
    suite: str | None, workers: int, tx: tuple[str, ...], report_: str | None, baseline_: Path | None,
    pytest_args: tuple[str, ...], **options: Any,
) -> None:  # fmt: skip
    """Check IMPLEMENTATION (default: torch).

    Arguments after "--" go to pytest. Exit status: 0 if everything holds, 1 if something fails, 2 for a wrong option, a
    problem with the environment, or an interrupted run.
    """
    # Click gives the first word after "--" to IMPLEMENTATION when none was named.
    if options["implementation"].startswith("-"):
        pytest_args, options["implementation"] = (options["implementation"], *pytest_args), "torch"
    if report_ is None and options["profile"] != "replay":
        report_ = ndjson.DEFAULT_PATH
    options["memory_limit"] = options["memory_limit"] or default_limit(sum(map(worker_specs.count, tx)) or workers)
    targets = exports.chosen({name: options.pop(name) for name in exports.FORMATS})
    try:
        base = _baseline(baseline_, report_)
        if report_ is not None:
            ndjson.check_path(Path(report_))
        exports.check(targets, report_, {"the baseline": baseline_})
        arguments = _Arguments(suite, workers, tx, pytest_args, {**options, "report": report_}, base, baseline_)
        before = _last_change(report_)
        status = supervised(partial(_run, arguments))
    except UsageProblem as problem:
        raise Problem(str(problem)) from None
    # Without a change the file is the report of an earlier run.
    written = Path(report_) if report_ is not None and _last_change(report_) != before else None
    if written is not None:
        export(written, targets)
        status = _confirmed(status, written)
    if base is not None and baseline_ is not None:
        if status == USAGE and written is None:
            # The run has said what is wrong.
            sys.exit(USAGE)
        if status == USAGE or written is None:
            raise Problem("the gate cannot pass: the run did not finish; see its output for the reason")
        status = compare_with_baseline(base, baseline_, written)
    sys.exit(status)


def _confirmed(status: int, path: Path) -> int:
    """The exit status of a run that ended with this one, if its report agrees."""
    lines = ndjson.read(path)
    if status == 0 and (ndjson.flaw(lines) or lines[-1].get("verdict") != "holds"):
        raise Problem(f"the run ended as if everything held, but its report {path} does not say so")
    return status


@dataclass(frozen=True)
class _Arguments:
    """What was asked for, in the process that imports the implementation."""

    suite: str | None
    workers: int
    tx: tuple[str, ...]
    pytest_args: tuple[str, ...]
    options: dict[str, Any]
    base: Baseline | None
    baseline: Path | None


def _run(given: _Arguments) -> int:
    """Run the tests. Returns the exit status."""
    options = given.options
    try:
        parallel, tests = _parallel(given.workers, given.tx, given.pytest_args), _tests(given.suite)
        places = _places(tests, given.tx)
        if options["cost"] and options["shard"]:
            raise UsageProblem(f"--cost does not go with --shard {options['shard']}; measure it in a run of its own")
        selection = Selection.from_options(
            SimpleNamespace(**options, file_or_dir=[str(tests)]),
            before_loading=partial(_verify_adapter, known=given.base is not None),
        )
        if given.base is not None:
            _verify_comparable(given.base, selection, given.baseline)
    except UsageProblem as problem:
        Problem(str(problem)).show()
        return USAGE
    if options["cost"]:
        click.echo("measuring the cost of a call in several processes")
    if selection.replays and not selection.kept:
        where = options["replay"] or ndjson.DEFAULT_PATH
        Problem(f"nothing was checked: {where} has no counterexamples to replay").show()
        return USAGE
    isolation.isolate_environment()
    try:
        status = pytest.main([*_PYTEST, *_words(options), *parallel, *given.pytest_args, *places])
    except KeyboardInterrupt:  # too early or too late for pytest
        status = pytest.ExitCode.INTERRUPTED
    return _status(status)


def _verify_adapter(name: str, *, known: bool) -> None:
    """Raise UsageProblem for an adapter with mistakes. One with a baseline is known to have none."""
    warning = smoke.verify(name, known=known)
    if warning:
        click.echo(f"warning: {warning}", err=True)


def _baseline(path: Path | None, report_: str | None) -> Baseline | None:
    """The baseline to compare the run with. Raises UsageProblem if that is not possible."""
    if path is None:
        return None
    if report_ is None:
        raise UsageProblem(f"--baseline {path} does not go with --profile replay, which runs only kept counterexamples")
    if Path(report_).resolve() == path.resolve():
        raise UsageProblem(f"--report {report_} would overwrite the baseline; choose another file")
    return baseline.read(path)


def _verify_comparable(base: Baseline, selection: Selection, path: Path | None) -> None:
    if selection.shard is not None:
        raise UsageProblem(
            f"--baseline {path} does not go with --shard {selection.shard}; merge the shards, and compare the merged "
            "report with the baseline"
        )
    gate.verify_alike(base, baseline.parameters(header.header(selection, None)), where=str(path))


def _last_change(path: str | None) -> int | None:
    return Path(path).stat().st_mtime_ns if path is not None and Path(path).exists() else None


def _tests(suite: str | None) -> Path:
    """The tests to run: the complete suite, a part of it, or others."""
    if suite is None:
        return SUITES
    for place in (Path(suite), SUITES / suite):
        if place.exists():
            return place.resolve()
    parts = ", ".join(sorted(path.name for path in SUITES.iterdir() if path.is_dir() and path.name[0] not in "_."))
    raise UsageProblem(f"unknown suite {suite!r}; give a path, or choose from: {parts}")


def _places(tests: Path, tx: Sequence[str]) -> Sequence[str]:
    """The arguments of pytest that name the tests. Raises UsageProblem for tests that another machine does not have."""
    if all("popen" in spec for spec in tx):
        return *isolation.ROOT, str(tests)
    if not tests.is_relative_to(PACKAGE):
        raise UsageProblem(
            f"--suite {tests} is only on this machine; use popen workers with --tx, or leave out --suite"
        )
    module = ("autograd_conformance", *tests.relative_to(PACKAGE).with_suffix("").parts)
    return "--noconftest", "--pyargs", ".".join(module)


def _words(options: dict[str, Any]) -> list[str]:
    """The options as arguments of pytest."""
    named = {f"--{name.replace('_', '-')}": value for name, value in options.items()}
    return [n if v is True else f"{n}={v}" for n, v in named.items() if v is not None and v is not False]


def _parallel(workers: int, tx: Sequence[str], pytest_args: Sequence[str]) -> Sequence[str]:
    """The arguments of pytest for the workers. Raises UsageProblem if they are given twice."""
    if any(word.split("=")[0] in ("--tx", "--numprocesses") for word in pytest_args):
        raise UsageProblem('give -n or --tx before "--", not after it')
    if not tx:
        return (*_XDIST, f"--numprocesses={workers}") if workers else ()
    source = click.get_current_context().get_parameter_source("workers")
    if source is not click.core.ParameterSource.DEFAULT:
        raise UsageProblem(
            f"-n {workers} and --tx {tx[0]} exclude each other; give the number with --tx, as in 2*popen"
        )
    for spec in tx:
        worker_specs.verify(spec)
    return (*_XDIST, *(f"--tx={spec}" for spec in tx))


def _status(code: int) -> int:
    return int(code) if code in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED) else USAGE
