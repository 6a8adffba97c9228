"""``autograd-conformance record``: draft declarations from the calls that a program makes."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import click

from autograd_conformance.harness.commands import Number, Problem, echo
from autograd_conformance.harness.drafting import recorded_file as files
from autograd_conformance.harness.drafting import recording
from autograd_conformance.harness.outcomes import HOLDS, UNDECIDED, UsageProblem
from autograd_conformance.implementations.protocol import Unavailable

DEFAULT = "recorded_functions.py"


@click.command()
@click.option("-o", "--output", default=DEFAULT, show_default=True, metavar="FILE", type=click.Path(path_type=Path),
              help="The file of declarations to write.")  # fmt: skip
@click.option("--time-limit", type=Number(1), default=60.0, show_default=True, metavar="S",
              help="Seconds that a single call may take while it is found out what forward takes.")  # fmt: skip
@click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="-- COMMAND...")
def record(output: Path, time_limit: float, command: tuple[str, ...]) -> None:
    """Run COMMAND, watch its calls of custom Functions, and write declarations of them.

    COMMAND is a script, a program, or options of Python: record -- train.py, record -- pytest tests, record -- -m
    package. Then read the declarations, and run check on them. Exit status: 0 if declarations were written and COMMAND
    ended well, otherwise 2.
    """
    if not command:
        raise Problem("give the command whose calls to record, as in: autograd-conformance record -- train.py")
    try:
        files.verify(output)
        found = recording.record(command)
        if found.ended:
            echo(f"{shlex.join(command)} {found.ended}; what it called until then counts", err=True)
        written = files.write(found, output, shlex.join(command), seconds=time_limit)
    except (UsageProblem, Unavailable) as problem:
        raise Problem(str(problem)) from None
    for sentence in written.sentences:
        echo(sentence)
    sys.exit(UNDECIDED if found.ended or not written.declared else HOLDS)
