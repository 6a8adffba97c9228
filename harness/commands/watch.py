"""``autograd-conformance watch``: check the custom Functions of a program on the calls that it makes."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import click

from autograd_conformance.harness.check.declaration import intentions
from autograd_conformance.harness.check.report import formats
from autograd_conformance.harness.commands import Number, Problem, echo
from autograd_conformance.harness.inside.watching import USUAL
from autograd_conformance.harness.outcomes import UsageProblem
from autograd_conformance.harness.processes import instrumented
from autograd_conformance.harness.processes.child import exit_status
from autograd_conformance.harness.watching.collecting import collected
from autograd_conformance.harness.watching.known import read
from autograd_conformance.harness.watching.summing_up import SCRIPTS, Summary

# The formats of a report, by the suffix of its file.
_REPORTS = {".json": "json", ".sarif": "sarif"}


@click.command()
@click.option(
    "--only", multiple=True, metavar="PATTERN", help="Watch these Functions alone: names or globs; repeatable."
)
@click.option("--skip", multiple=True, metavar="PATTERN", help="Leave out these Functions; repeatable.")
@click.option("--budget", type=Number(0), default=USUAL["share"], show_default=True, metavar="SHARE",
              help="The part of the program's time that the checks may take.")  # fmt: skip
@click.option("--limit", type=Number(0), default=USUAL["limit"], show_default=True, metavar="S",
              help="The seconds that the checks of one Function may take, in each process.")  # fmt: skip
@click.option("--report", type=click.Path(path_type=Path), metavar="FILE",
              help="Write what was found to this file: .json or .sarif.")  # fmt: skip
@click.option("--in-process", is_flag=True,
              help="Where no process can be forked, check in the program, whose state may change.")  # fmt: skip
@click.option("--keep-inputs", is_flag=True,
              help=f"Keep a call with a fault of each Function in {SCRIPTS}, with the program's own data.")  # fmt: skip
@click.option("--baseline", "accepted", type=click.Path(path_type=Path), metavar="FILE",
              help="Faults that are known, as accept writes them: only others fail.")  # fmt: skip
@click.option("--format", "form", type=click.Choice((formats.TEXT, "github")), default=formats.TEXT, show_default=True,
              help="How to print what was found: github adds annotations.")  # fmt: skip
@click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="-- COMMAND...")
def watch(
    only: tuple[str, ...], skip: tuple[str, ...], budget: float, limit: float, report: Path | None,
    in_process: bool, keep_inputs: bool, accepted: Path | None, form: str, command: tuple[str, ...],
) -> None:  # fmt: skip
    """Run COMMAND, and check each custom Function on the calls that it makes.

    COMMAND is a script, a program, or options of Python: watch -- train.py, watch -- pytest tests, watch -- -m package.
    A check runs in a forked copy of the process, so that the program computes what it computes without; where none can
    be forked, as with CUDA, calls are left out unless --in-process is given. What forward
    does outside of the process, as to a file, a queue or a server, it does again in each check, dozens of times: --skip
    leaves such a Function out. Exit status: that of COMMAND
    if it is not 0, otherwise 1 if a fault was found, 2 if no Function could be checked, and 0.
    """
    if not command:
        raise Problem("give the command whose calls to check, as in: autograd-conformance watch -- train.py")
    if report is not None and report.suffix not in _REPORTS:
        raise Problem(f"--report must be a file that ends in {' or '.join(_REPORTS)}, got {report}")
    try:
        known = read(accepted) if accepted is not None else frozenset()
        keep = str(Path.cwd() / SCRIPTS) if keep_inputs else ""
        for path in Path(keep).rglob("*-inputs.p*") if keep else ():
            path.unlink()
        options = {
            "share": budget, "limit": limit, "only": only, "skip": skip, "keep": keep, "in_process": in_process,
            "means": intentions.read(Path.cwd()),
        }  # fmt: skip
        with instrumented.instrumented("watching", **options) as (environment, folder):
            status = instrumented.run(command, environment)
            summary = Summary(collected(folder), Path(SCRIPTS), known)
    except UsageProblem as problem:
        raise Problem(str(problem)) from None
    for row in summary.rows():
        echo(row, err=True)
    if form in formats.FORMATS:
        echo(formats.FORMATS[form](summary.document()), err=True)
    if report is not None:
        report.write_text(formats.FORMATS[_REPORTS[report.suffix]](summary.document()) + "\n", encoding="utf-8")
    if status:
        echo(f"{shlex.join(command)} ended with {exit_status(status)}", err=True)
    sys.exit(status if status > 0 else 128 - status if status else summary.status)
