"""The command ``autograd-conformance``."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click
import pytest
from tabulate import tabulate

from autograd_conformance import implementations
from autograd_conformance.harness import catalogue, clause_table, findings, page, report
from autograd_conformance.harness.memory import default_limit
from autograd_conformance.harness.outcomes import UsageProblem
from autograd_conformance.harness.plugin import TIME_LIMIT
from autograd_conformance.harness.profiles import PROFILES
from autograd_conformance.harness.selection import Selection
from autograd_conformance.implementations.protocol import Unavailable
from autograd_conformance.reference.clauses import CLAUSES
from autograd_conformance.reference.definitions import FLOATING
from autograd_conformance.reference.functions import FUNCTIONS
from autograd_conformance.reference.properties import PROPERTIES

PACKAGE = Path(__file__).resolve().parent.parent
USAGE = 2

# Nothing of the user's pytest configuration takes part: no ini file, no plugins but these, no conftest from outside.
_PYTEST = (
    "-c", os.devnull, f"--rootdir={PACKAGE}", f"--confcutdir={PACKAGE}", "--import-mode=importlib",
    "-p", "hypothesispytest", "-p", "autograd_conformance.harness.plugin", "-p", "no:cacheprovider",
    "-q", "--tb=no", "-rN", "--disable-warnings", "-W", "ignore::pytest.PytestAssertRewriteWarning",
)  # fmt: skip
_XDIST = ("-p", "xdist", "--dist=worksteal", "--max-worker-restart=1000")

# Workers share the cores; a framework that starts a thread for each of them in every worker is slower.
_ENVIRONMENT = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}


class _Problem(click.ClickException):
    """One sentence on stderr, and the exit status of a usage error."""

    exit_code = USAGE


class _Group(click.Group):
    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        if args and args[0] not in self.commands:
            raise _Problem(f"unknown command {args[0]!r}; choose from: {', '.join(self.commands)}")
        return super().resolve_command(ctx, args)


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(report.version_of("autograd-conformance"), package_name="autograd-conformance")
def main() -> None:
    """Check custom autograd Functions against what their documentation says."""


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@main.command()
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
        selection = Selection.from_options(SimpleNamespace(**given))
        if report_ is not None:
            report.check_path(Path(report_))
        tests = _tests(suite)
    except UsageProblem as problem:
        raise _Problem(str(problem)) from None
    if selection.calls == {}:
        click.echo("nothing to replay: the report holds no failure")
        return
    os.environ.update(_ENVIRONMENT)
    os.environ.pop("PYTEST_ADDOPTS", None)
    try:
        status = pytest.main([*_PYTEST, *_words(given), *_parallel(workers), *pytest_args, str(tests)])
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


@main.command("report")
@click.argument("reports", nargs=-1, metavar="REPORT...", type=click.Path(path_type=Path))
@click.option("-o", "--output", default="matrix.html", show_default=True, metavar="FILE", help="The page to write.")
def report_(reports: tuple[Path, ...], output: str) -> None:
    """Make one page of the REPORTs of several runs: implementations by property and clause."""
    if not reports:
        raise _Problem(
            "name the reports to show, as in: autograd-conformance report torch.ndjson jax.ndjson -o all.html"
        )
    try:
        found = page.read(reports)
        for one in found:
            if one.footer is None:
                click.echo(f"warning: the run of {one.path} did not finish", err=True)
        Path(output).write_text(page.html(found), encoding="utf-8")
    except UsageProblem as problem:
        raise _Problem(str(problem)) from None
    except OSError as problem:
        raise _Problem(f"the page cannot be written to {output}: {problem.strerror}; choose with -o FILE") from None
    click.echo(f"{output}: {len(found)} implementation{'s' if len(found) > 1 else ''}")


@main.group("list", cls=_Group)
def list_() -> None:
    """List what there is to choose from."""


@list_.command("functions")
def list_functions() -> None:
    """The Functions that the suite checks."""
    rows = [(f.name, ", ".join(a.name for a in f.arguments), f.exercises, f.document) for f in FUNCTIONS.values()]
    _table(("function", "arguments", "exercises", "document"), rows)


@list_.command("properties")
def list_properties() -> None:
    """The properties that it checks of each."""
    _table(("property", "what must hold"), [(p.id, p.sentence) for p in PROPERTIES.values()])


@list_.command("clauses")
@click.option("--coverage", is_flag=True, help="Print how many of each group are tested, as Markdown, instead.")
@click.option("--report", "report_", metavar="FILE", help="Print what a report says of each, as Markdown, instead.")
def list_clauses(coverage: bool, report_: str | None) -> None:
    """The clauses of the documented contract, with their tests."""
    if coverage and report_ is not None:
        raise _Problem("--coverage and --report exclude each other; give one of them")
    if report_ is not None:
        click.echo(_clauses_of(Path(report_)))
        return
    if coverage:
        click.echo(catalogue.coverage())
        return
    rows = [(c.id, c.level, c.sentence, c.document, catalogue.where(c)) for c in CLAUSES.values()]
    _table(("clause", "level", "what must hold", "document", "tests"), rows)


def _clauses_of(path: Path) -> str:
    try:
        results = [line for line in report.read(path) if "clause" in line]
    except UsageProblem as problem:
        raise _Problem(str(problem)) from None
    if not results:
        raise _Problem(f"{path} has no result of a clause; write one with: autograd-conformance run --report {path}")
    return clause_table.markdown(results)


@list_.command("findings")
def list_findings() -> None:
    """What the implementations are known not to keep, as Markdown: faults and differences, with scripts."""
    click.echo(findings.markdown(), nl=False)


@list_.command("implementations")
def list_implementations() -> None:
    """The implementations that it can check."""
    _table(
        ("implementation", "installed"),
        [(name, _installed(name)) for name in (*implementations.ADAPTERS, *implementations.joined())],
    )


def _installed(name: str) -> str:
    try:
        return implementations.load(name).environment().version
    except Unavailable as problem:
        return f"not installed: {problem}"


def _table(heading: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print an aligned table; on a terminal long cells are wrapped to its width."""
    if sys.stdout.isatty():
        width = shutil.get_terminal_size().columns
        fixed = sum(max(len(row[n]) for row in (heading, *rows)) + 2 for n in range(len(heading)) if _short(rows, n))
        wrapped = max(20, (width - fixed) // max(1, sum(not _short(rows, n) for n in range(len(heading)))) - 2)
        rows = [[c if _short(rows, n) else textwrap.fill(c, wrapped) for n, c in enumerate(row)] for row in rows]
    click.echo(tabulate(rows, heading, tablefmt="simple"))


def _short(rows: Sequence[Sequence[str]], column: int) -> bool:
    return max(len(row[column]) for row in rows) <= 28
