"""``autograd-conformance check``: check Functions of your own."""

from __future__ import annotations

import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from autograd_conformance import implementations
from autograd_conformance.harness import report
from autograd_conformance.harness.commands import USAGE, Problem
from autograd_conformance.harness.outcomes import UsageProblem
from autograd_conformance.harness.own import running
from autograd_conformance.harness.own.declaration import REQUESTS
from autograd_conformance.harness.own.loading import Plan
from autograd_conformance.harness.own.telling import told
from autograd_conformance.harness.own.verdicts import ERROR, LOST, verdict
from autograd_conformance.harness.profiles import PROFILES
from autograd_conformance.harness.selection import matching
from autograd_conformance.implementations.protocol import Unavailable
from autograd_conformance.reference.properties import PROPERTIES
from autograd_conformance.strategies.descriptors import FORMS, WORDS

SCRIPTS = "autograd-conformance-scripts"

_PROFILES = tuple(name for name in PROFILES if name != "replay")

# What is said of a Function that is named on the command line.
_FLAGS = ("once", "surrogate", "stochastic", "single_backward", "nonlinear")

_EPILOG = (
    "\b\nArguments are described as\n"
    + "".join(f"  {form}\n" for form in FORMS)
    + "\n\b\nWords for tensors\n"
    + "".join(f"  {word:<10} {about}\n" for word, about in WORDS.items())
)


@click.command(epilog=_EPILOG)
@click.argument("targets", nargs=-1, required=True, metavar="MODULE:NAME|FILE.py|MODULE...")
@click.option("--arg", "arguments", multiple=True, metavar="TEXT", help="An argument, in order; repeatable.")
@click.option("--once", is_flag=True, help="It refuses second derivatives.")
@click.option("--surrogate", is_flag=True, help="Its gradient is not the derivative of its forward, on purpose.")
@click.option("--stochastic", is_flag=True, help="It draws random numbers.")
@click.option("--single-backward", is_flag=True, help="A graph through it can be used once.")
@click.option("--nonlinear", is_flag=True, help="Its VJP is not linear in the cotangent, on purpose.")
@click.option("--inplace", type=click.IntRange(0), multiple=True, metavar="N",
              help="Position of an argument that it changes and returns; repeatable.")  # fmt: skip
@click.option("--dtypes", metavar="T,T", help="The dtypes that it takes; default: all that it does.")
@click.option("--also", multiple=True, metavar="|".join(REQUESTS), help="What else to check; repeatable.")
@click.option("--implementation", default="torch", show_default=True, metavar="NAME", help="Whose Function it is.")
@click.option("--functions", metavar="PATTERN", help="Functions of a file to check: names or globs, comma-separated.")
@click.option("--properties", metavar="PATTERN", help="Properties to check: ids or globs, comma-separated.")
@click.option("--profile", default="gate", show_default=True, metavar="|".join(_PROFILES), help="How thoroughly.")
@click.option("--seed", type=click.IntRange(0), metavar="N", help="Seed of the examples.")
@click.option("--time-limit", type=click.FloatRange(1), default=60.0, show_default=True, metavar="S",
              help="Seconds that one property of one Function may take.")  # fmt: skip
@click.option("--report", "report_", type=click.Path(path_type=Path), metavar="FILE", help="Report to write.")
@click.option("--scripts", type=click.Path(path_type=Path), default=Path(SCRIPTS), show_default=True, metavar="DIR",
              help="Where scripts go that show a fault without this suite.")  # fmt: skip
def check(
    targets: tuple[str, ...], arguments: tuple[str, ...], inplace: tuple[int, ...], dtypes: str | None,
    also: tuple[str, ...], implementation: str, profile: str, report_: Path | None, scripts: Path, **given: Any,
) -> None:  # fmt: skip
    """Check Functions of your own against the properties of any Function.

    A target is a Function class, its apply or any callable, whose arguments --arg describes; or a file or module with
    declarations. Exit status: 0 if nothing is wrong, 1 if something is, 2 if something could not be checked.
    """
    said: dict[str, Any] = {name: True for name in _FLAGS if given.pop(name)}
    listed = {"dtypes": dtypes.split(",") if dtypes else [], "also": list(also), "inplace": list(inplace)}
    said.update({word: values for word, values in listed.items() if values})
    try:
        _verify(targets, arguments, said, profile, report_, given["properties"])
        implementations.check_version(implementations.load(implementation))
    except (UsageProblem, Unavailable) as problem:
        raise Problem(str(problem)) from None
    run = _Run(implementation, scripts, report_, {**given, "profile": profile})
    sys.exit(max(run.of(Plan(target, arguments, said)) for target in targets))


def _verify(
    targets: tuple[str, ...],
    arguments: tuple[str, ...],
    said: dict[str, Any],
    profile: str,
    report_: Path | None,
    properties: str | None,
) -> None:
    """Raise UsageProblem for words that do not go together."""
    if profile not in _PROFILES:
        raise UsageProblem(f"unknown profile {profile!r}; choose from: {', '.join(_PROFILES)}")
    if len(targets) > 1 and (arguments or report_ is not None):
        word = "--arg describes the arguments of" if arguments else "--report is that of"
        raise UsageProblem(f"{word} one target, and {len(targets)} are named")
    if said and not arguments:
        words = ", ".join(f"--{word.replace('_', '-')}" for word in said)
        raise UsageProblem(
            f"{words} goes with --arg; of a declaration say it there: Declaration(..., {next(iter(said))}=...)"
        )
    matching("property", properties, PROPERTIES)
    if report_ is not None:
        report.check_path(report_)


@dataclass(frozen=True)
class _Run:
    """How targets are checked."""

    implementation: str
    scripts: Path
    kept: Path | None
    options: dict[str, Any]

    def of(self, plan: Plan) -> int:
        """Check one target, tell what comes of it, and give the exit status."""
        try:
            found = running.find_out(plan, self.implementation, seconds=self.options["time_limit"])
            matching("Function", self.options["functions"], (*found.plan.facts, *found.problems))
            results = self._results(found.plan) if found.plan.facts else []
        except UsageProblem as problem:
            click.echo(f"Error: {problem}", err=True)
            return USAGE
        statuses = [self._tell(found, name, [r for r in results if r["function"] == name]) for name in found.plan.facts]
        for sentence in found.problems.values():
            click.echo(f"Error: {sentence}", err=True)
        return max((*statuses, USAGE if found.problems else 0))

    def _results(self, plan: Plan) -> list[report.Line]:
        with tempfile.TemporaryDirectory(prefix="autograd-conformance-") as folder:
            path = Path(folder, "plan.json")
            plan.write(path)
            return running.run(path, self.options, self.kept or Path(folder, "report.ndjson"), self.implementation)

    def _tell(self, found: running.Found, name: str, lines: list[report.Line]) -> int:
        """Tell what came of a Function, and give its exit status."""
        if not lines:
            return 0
        facts = found.plan.facts[name]
        title = f"{name} ({found.places[name]}): {found.described[name]}"
        click.echo("\n".join(told(title, facts, lines, self.scripts)))
        words = {v.word for v in map(verdict, lines) if v is not None and v.fault}
        return USAGE if words & {*LOST, ERROR} else int(bool(words or facts.stale))
