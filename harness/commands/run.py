"""``autograd-conformance run``: check an implementation."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click
import pytest

from autograd_conformance.harness.catalogue import SUITES
from autograd_conformance.harness.commands import Number, Problem, echo, import_option, package_option
from autograd_conformance.harness.commands.gate import compare_with_baseline
from autograd_conformance.harness.commands.report import export, markdown_option, summary_file
from autograd_conformance.harness.outcomes import HOLDS, UNDECIDED, UsageProblem, one_line
from autograd_conformance.harness.probing import smoke
from autograd_conformance.harness.processes import isolation, waiting
from autograd_conformance.harness.processes.memory import default_limit
from autograd_conformance.harness.processes.supervision import supervised
from autograd_conformance.harness.provenance import identity, sources
from autograd_conformance.harness.reports import baseline, files, gate, ndjson
from autograd_conformance.harness.reports.baseline import Baseline
from autograd_conformance.harness.running import header, pytest_arguments, resuming, schedulers
from autograd_conformance.harness.running.plugin import TIME_LIMIT
from autograd_conformance.harness.running.selection import Selection, inputs
from autograd_conformance.harness.testing.profiles import PROFILES
from autograd_conformance.reference.definitions import FLOATING

_PYTEST = (*pytest_arguments.ARGUMENTS, *pytest_arguments.ROOT, "--progress", "-o", "console_output_style=classic")
_XDIST = ("-p", "xdist", "--dist=worksteal", "--max-worker-restart=1000")


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@click.command()
@click.argument("implementation", default="torch")
@click.option("--functions", metavar="PATTERN", help="Functions to check: names or globs, comma-separated.")
@click.option(
    "--properties",
    metavar="PATTERN",
    help="Properties and clauses to check: ids or globs, comma-separated; VJP-FD/long is one test.",
)
@click.option("--suite", metavar="PATH", help="Folder or file of tests to run instead of the complete suite.")
@click.option(
    "--profile", default="gate", show_default=True, metavar="|".join(PROFILES), help="How many examples to run."
)
@click.option("--seed", type=Number(0, whole=True), metavar="N", help="Seed of the examples.")
@click.option("--device", "--devices", metavar="D,D", help="Run only on these devices; default: all devices.")
@import_option
@package_option
@click.option("--dtype", metavar="|".join(FLOATING), help="Use only this dtype for floating tensors.")
@click.option("-n", "--workers", type=Number(0, whole=True), default=_cores, show_default="all cores", metavar="N",
              help="Number of worker processes; with 0 tests run in this one, and a crash ends the run.")  # fmt: skip
@click.option("--shard", metavar="I/N|auto[/N]",
              help="Run only part I of N of the test ids; see merge. With auto the scheduler says which.")  # fmt: skip
@click.option("--run-id", metavar="TEXT",
              help="Id that all shards of a run have, and no others; default: that of the CI system.")  # fmt: skip
@click.option("--balance", metavar="FILE", help="Balance the shards by the durations in this report of an earlier run.")
@click.option("--time-limit", type=Number(1), default=TIME_LIMIT, show_default=True, metavar="S",
              help="Time limit of a test in seconds.")  # fmt: skip
@click.option("--memory-limit", type=Number(0.1), metavar="GIB",
              help="Memory limit of a worker in GiB; default: its share of 80 % of this machine's memory.")  # fmt: skip
@click.option("--report", "report_", metavar="FILE", help=f"Report to write; default: {ndjson.DEFAULT_PATH}.")
@click.option("--resume", metavar="FILE",
              help="Go on with the interrupted run of this report: keep its results, and complete it.")  # fmt: skip
@click.option("--resume-finished", is_flag=True,
              help="With --resume: if that report is finished, say its verdict and run nothing.")  # fmt: skip
@click.option("--baseline", "baseline_", type=click.Path(path_type=Path), metavar="FILE",
              help="Compare the run with this baseline; exit status 1 if something is worse.")  # fmt: skip
@click.option("--other-suite", is_flag=True, help="Compare even if the baseline was made with another suite.")
@click.option("--replay", metavar="FILE",
              help=f"Report or corpus to replay with --profile replay; default: {ndjson.DEFAULT_PATH}.")  # fmt: skip
@click.option(
    "--corpus", metavar="FILE", help="Run the counterexamples of this corpus before drawn examples; see keep."
)
@click.option("--expect", metavar="NAME[==VERSION]|FILE.json",
              help="Verify that this fork is imported; give its distribution, or pip's report.")  # fmt: skip
@markdown_option
@click.argument("pytest_args", nargs=-1, type=click.UNPROCESSED)
def run(
    suite: str | None, workers: int, report_: str | None, baseline_: Path | None,
    other_suite: bool, resume_finished: bool, markdown: str | None, pytest_args: tuple[str, ...], **options: Any,
) -> None:  # fmt: skip
    """Check IMPLEMENTATION (default: torch).

    Arguments after "--" go to pytest. Exit status: 0 if everything holds, 1 if something fails, 2 for a wrong option, a
    problem with the environment, or an interrupted run.
    """
    # Click gives the first word after "--" to IMPLEMENTATION when none was named.
    if options["implementation"].startswith("-"):
        pytest_args, options["implementation"] = (options["implementation"], *pytest_args), "torch"
    if report_ is None and options["resume"] is not None:
        report_ = options["resume"]
    if report_ is None and options["profile"] != "replay":
        report_ = ndjson.DEFAULT_PATH
    options["memory_limit"] = options["memory_limit"] or default_limit(workers)
    if other_suite and baseline_ is None:
        raise Problem("--other-suite is about --baseline FILE; give one, or leave it out")
    if resume_finished and options["resume"] is None:
        raise Problem("--resume-finished is about --resume FILE; give one, or leave it out")
    try:
        options["shard"] = schedulers.resolved(options["shard"], os.environ)
        options["resume"] = _to_resume(options["resume"], report_, finished=resume_finished)
        options["seed"] = _seed(options["seed"], options["profile"], options["resume"])
        base = _baseline(baseline_, report_)
        _verify_files(report_, markdown, {**inputs(SimpleNamespace(**options)), "the baseline": baseline_})
        arguments = _Arguments(
            suite, workers, pytest_args, {**options, "report": report_}, base, baseline_, other_suite
        )
        before = _last_change(report_)
        # Read before the implementation can change it.
        sources.of_suite()
        status = supervised(partial(_run, arguments))
    except UsageProblem as problem:
        raise Problem(str(problem)) from None
    # Without a change the file is the report of an earlier run.
    lines: list[ndjson.Line] = []
    written = Path(report_) if report_ is not None and _last_change(report_) != before else None
    if written is not None and files.is_being_written(written):
        # By another run, which the refused one has found.
        sys.exit(UNDECIDED)
    if written is not None:
        if markdown is not None:
            export(written, markdown)
        lines = _confirmed(status, written)
    elif status == HOLDS and report_ is not None:
        raise Problem(f"the run ended as if everything held, but it wrote no report {report_}")
    if base is not None and baseline_ is not None:
        if status == UNDECIDED and written is None:
            # The run has said what is wrong.
            sys.exit(UNDECIDED)
        if status == UNDECIDED or written is None:
            raise Problem("the gate cannot pass: the run did not finish; see its output for the reason")
        status = compare_with_baseline(base, baseline_, written, lines, other_suite=other_suite)
    sys.exit(status)


def _confirmed(status: int, path: Path) -> list[ndjson.Line]:
    """The report of a run that ended with this exit status, if it agrees."""
    lines = ndjson.read(path)
    if lines[0].get("run", {}).get("command") != identity.COMMAND:
        raise Problem(f"the report {path} is that of another run: two wrote it at the same time; give each its own")
    made_with = lines[0]["suite"].get("sources", {})
    if any(made_with.get(room) != digest for room, digest in sources.of_suite().items()):
        raise Problem(f"the report {path} was not written by this suite, or the suite was changed while it ran")
    if status == 0 and (ndjson.flaw(lines) or lines[-1].get("verdict") != "holds"):
        raise Problem(f"the run ended as if everything held, but its report {path} does not say so")
    return lines


@dataclass(frozen=True)
class _Arguments:
    """What was asked for, in the process that imports the implementation."""

    suite: str | None
    workers: int
    pytest_args: tuple[str, ...]
    options: dict[str, Any]
    base: Baseline | None
    baseline: Path | None
    other_suite: bool


def _own_options(command: click.Command) -> set[str]:
    return {name for each in command.params if isinstance(each, click.Option) for name in each.opts}


@waiting.watched()
def _run(given: _Arguments) -> int:
    """Run the tests. Returns the exit status."""
    options = given.options
    try:
        options["pytest_arguments"] = pytest_arguments.recorded(given.pytest_args, _own_options(run))
        parallel = (*_XDIST, f"--numprocesses={given.workers}") if given.workers else ()
        tests = _tests(given.suite)
        options["suite_of_run"] = str(tests)
        if parallel:
            _verify_sendable([os.getcwd(), *_words(options), str(tests)])
        selection = Selection.from_options(
            SimpleNamespace(**options, file_or_dir=[str(tests)]),
            before_loading=partial(_verify_adapter, known=given.base is not None),
        )
        if given.base is not None:
            _verify_comparable(given.base, selection, given)
    except UsageProblem as problem:
        Problem(str(problem)).show()
        return UNDECIDED
    if selection.replays and not selection.kept:
        where = options["replay"] or ndjson.DEFAULT_PATH
        Problem(f"nothing was checked: {where} has no counterexamples to replay").show()
        return UNDECIDED
    isolation.isolate_environment()
    try:
        waiting.phase("pytest, which starts the workers and collects the tests")
        status = pytest.main([*_PYTEST, *_words(options), *parallel, *given.pytest_args, str(tests)])
    except KeyboardInterrupt:  # too early or too late for pytest
        status = pytest.ExitCode.INTERRUPTED
    except BrokenPipeError:
        # It is said where the run is supervised.
        raise
    except Exception as raised:  # noqa: BLE001 - as with -W error, before pytest can say it
        Problem(f"pytest cannot start: {one_line(raised)}").show()
        status = UNDECIDED
    waiting.phase(None)
    return _status(status)


def _to_resume(resume: str | None, report_: str | None, *, finished: bool) -> str | None:
    """The report to resume; None if there is none. Raises UsageProblem if it is not the report of this run.

    One that is ``finished`` is resumed only if that was asked for: its verdict was given by the run that wrote it.
    """
    if resume is None:
        return None
    if report_ is not None and not files.same(Path(resume), Path(report_)):
        raise UsageProblem(f"--resume {resume} completes that report, and not --report {report_}; leave out --report")
    if not Path(resume).exists():
        # So that one command starts a job, and continues it after the scheduler has stopped it.
        echo(f"{resume} does not exist: the run starts with its first test", err=True)
        return None
    if not finished and ndjson.flaw(ndjson.read(Path(resume))) is None:
        raise UsageProblem(
            f"{resume} is finished: nothing is left to run, and nothing is checked again. To run it again leave out "
            f"--resume; to take its verdict as it is give --resume-finished, as a job that may be started twice does"
        )
    return resume


def _seed(seed: int | None, profile: str, resume: str | None) -> int | None:
    """The seed that was asked for, or that of the run to go on with if its profile draws one."""
    drawn = profile in PROFILES and not PROFILES[profile].derandomized
    return resuming.read(Path(resume)).header["seed"] if resume is not None and seed is None and drawn else seed


def _verify_adapter(name: str, *, known: bool) -> None:
    """Raise UsageProblem for an adapter with mistakes. One with a baseline is known to have none."""
    warning = smoke.verify(name, known=known)
    if warning:
        echo(f"warning: {warning}", err=True)


def _baseline(path: Path | None, report_: str | None) -> Baseline | None:
    """The baseline to compare the run with. Raises UsageProblem if that is not possible."""
    if path is None:
        return None
    if report_ is None:
        raise UsageProblem(f"--baseline {path} does not go with --profile replay, which runs only kept counterexamples")
    return baseline.read(path)


def _verify_files(report_: str | None, markdown: str | None, read: dict[str, Path | None]) -> None:
    """Raise UsageProblem for files that cannot be written, or would overwrite something."""
    if markdown is not None and report_ is None:
        raise UsageProblem("--markdown needs a report; name one with --report FILE")
    report = [files.Output(Path(report_), files.REPORT)] if report_ is not None else []
    # Who else writes the report is looked for by the run itself, which finds all other mistakes first.
    files.verify([*report, *summary_file(markdown)], read, alone=False)


def _verify_comparable(base: Baseline, selection: Selection, given: _Arguments) -> None:
    path = given.baseline
    if selection.shard is not None:
        raise UsageProblem(
            f"--baseline {path} does not go with --shard {selection.shard}; merge the shards, and compare the merged "
            "report with the baseline"
        )
    head = header.header(selection, None)
    gate.verify_alike(base, baseline.parameters(head), where=str(path))
    if not given.other_suite:
        gate.verify_suite(base, baseline.sources(head), where=str(path))


def _last_change(path: str | None) -> int | None:
    return Path(path).stat().st_mtime_ns if path is not None and Path(path).exists() else None


def _tests(suite: str | None) -> Path:
    """The tests to run: the complete suite, a part of it, or others."""
    if suite is None:
        return SUITES
    # A name means a folder of the suite, even if there is one with this name in the working directory.
    places = [Path(suite)] if suite.startswith(".") else [SUITES / suite, Path(suite)]
    for place in places:
        # Workers would start before pytest says so.
        if place.is_file() and (place.suffix != ".py" or not re.search(rb"\btest", place.read_bytes())):
            raise UsageProblem(
                f"--suite {suite} is no Python file with a function test_...; give a folder of tests, or a file in "
                'which they are marked with @holds("PROPERTY") or @keeps("CLAUSE")'
            )
        if place.exists():
            return place.resolve()
    parts = ", ".join(sorted(path.name for path in SUITES.iterdir() if path.is_dir() and path.name[0] not in "_."))
    raise UsageProblem(f"unknown suite {suite!r}; give a path, or choose from: {parts}")


def _verify_sendable(words: Sequence[str]) -> None:
    """Raise UsageProblem for names that cannot be sent to a worker."""
    wrong = next((word for word in words if any("\ud800" <= letter <= "\udfff" for letter in word)), None)
    if wrong is not None:
        raise UsageProblem(
            f"{wrong} is not UTF-8, and so cannot be sent to a worker; use another name, or no workers: -n 0"
        )


def _words(options: dict[str, Any]) -> list[str]:
    """The options as arguments of pytest."""
    named = {f"--{name.replace('_', '-')}": value for name, value in options.items()}
    return [n if v is True else f"{n}={v}" for n, v in named.items() if v is not None and v is not False]


def _status(code: int) -> int:
    return int(code) if code in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED) else UNDECIDED
