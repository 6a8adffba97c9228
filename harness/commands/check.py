"""``autograd-conformance check``: check your own Functions."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import click

from autograd_conformance import implementations
from autograd_conformance.harness.check.declaration.declaration import REQUESTS
from autograd_conformance.harness.check.declaration.loading import Plan, Undeclared
from autograd_conformance.harness.check.declaration.served import serving
from autograd_conformance.harness.check.report import findings, formats
from autograd_conformance.harness.check.session import child_discovery
from autograd_conformance.harness.check.session.announcing import Announcer, summary
from autograd_conformance.harness.check.session.child_session import Following
from autograd_conformance.harness.check.session.display import Display
from autograd_conformance.harness.commands import Number, Problem, echo, import_option, package_option
from autograd_conformance.harness.drafting.assuming import assumed
from autograd_conformance.harness.outcomes import FAILS, HOLDS, UNDECIDED, UsageProblem, choose_from, combined
from autograd_conformance.harness.reports import files
from autograd_conformance.harness.running.patterns import matching, without_variants
from autograd_conformance.harness.testing.profiles import PROFILES
from autograd_conformance.implementations.protocol import Unavailable
from autograd_conformance.reference.clauses import CLAUSES
from autograd_conformance.reference.properties import PROPERTIES
from autograd_conformance.strategies.descriptors import FORMS, WORDS

SCRIPTS = "autograd-conformance-scripts"

INTERRUPTED = "interrupted"

_PROFILES = tuple(name for name in PROFILES if name != "replay")

# The options that describe a Function that is named on the command line.
_PROMISES = ("independent", "symmetric", "antisymmetric")
_FLAGS = ("once", "surrogate", "stochastic", "single_backward", "nonlinear")

_EPILOG = (
    "\b\nDescribe arguments as\n"
    + "".join(f"  {form}\n" for form in FORMS)
    + "\n\b\nWords for tensors\n"
    + "".join(f"  {word:<10} {about}\n" for word, about in WORDS.items())
)


@click.command(epilog=_EPILOG)
@click.argument("targets", nargs=-1, required=True, metavar="TARGET...")
@click.option(
    "--arg",
    "arguments",
    multiple=True,
    metavar="TEXT",
    help="Description of an argument; repeat for each one, in order.",
)
@click.option("--once", is_flag=True, help="Second derivatives raise an error, on purpose.")
@click.option("--surrogate", is_flag=True, help="The gradient is not the derivative of forward, on purpose.")
@click.option("--stochastic", is_flag=True, help="The Function draws random numbers.")
@click.option("--single-backward", is_flag=True, help="Only one backward pass through a graph is possible.")
@click.option("--nonlinear", is_flag=True, help="The VJP is not linear in the cotangent, on purpose.")
@click.option("--independent", multiple=True, metavar="NAME",
              help="A dimension: the results for a slice are the slice of the results; repeatable.")  # fmt: skip
@click.option("--symmetric", multiple=True, type=Number(0, whole=True), metavar="N",
              help="Position of a tensor that can be exchanged with others so marked; repeatable.")  # fmt: skip
@click.option("--antisymmetric", multiple=True, type=Number(0, whole=True), metavar="N",
              help="As --symmetric, where an exchange changes the sign of the outputs.")  # fmt: skip
@click.option("--inplace", type=Number(0, whole=True), multiple=True, metavar="N",
              help="Position of an argument that is changed in place and returned; repeatable.")  # fmt: skip
@click.option("--dtypes", metavar="T,T", help="The dtypes to check; default: all that the Function accepts.")
@click.option("--examples", type=Number(0), metavar="SHARE",
              help="Share of the profile's examples; default: all, or fewer if a call takes long.")  # fmt: skip
@click.option(
    "--also", multiple=True, metavar="|".join(REQUESTS), help="An additional check that nothing may refuse; repeatable."
)
@click.option(
    "--implementation",
    default="torch",
    show_default=True,
    metavar="NAME",
    help="The implementation that the Function is written for.",
)
@click.option(
    "--device", "--devices", "only", metavar="D,D", help="Check on these devices only; default: all of this machine."
)
@import_option
@package_option
@click.option("--functions", metavar="PATTERN", help="Functions of a file to check: names or globs, comma-separated.")
@click.option(
    "--properties",
    metavar="PATTERN",
    help="Properties to check: ids or globs, comma-separated; VJP-FD/long is one test.",
)
@click.option(
    "--profile", default="gate", show_default=True, metavar="|".join(_PROFILES), help="How many examples to run."
)
@click.option("--seed", type=Number(0, whole=True), metavar="N", help="Seed of the examples.")
@click.option("--time-limit", type=Number(1), default=60.0, show_default=True, metavar="S",
              help="Seconds in which a property may begin examples, and that a single call may take.")  # fmt: skip
@click.option("--edges", is_flag=True,
              help="Exit with 1 for edges, too: exceptions for tensors without elements alone.")  # fmt: skip
@click.option("--format", "form", default=formats.TEXT, show_default=True, metavar="|".join(formats.NAMES),
              help="How to print what was found: github adds annotations, sarif and json are alone.")  # fmt: skip
@click.option(
    "--report", "report_", type=click.Path(path_type=Path), metavar="FILE", help="Write a report to this file."
)
@click.option("--scripts", type=click.Path(path_type=Path), default=Path(SCRIPTS), show_default=True, metavar="DIR",
              help="Folder for the standalone scripts that show a fault.")  # fmt: skip
def check(
    targets: tuple[str, ...], arguments: tuple[str, ...], inplace: tuple[int, ...], dtypes: str | None,
    also: tuple[str, ...], examples: float | None,
    implementation: str, only: str | None, profile: str, report_: Path | None, scripts: Path, form: str,
    **given: Any,
) -> None:  # fmt: skip
    """Check your own Functions.

    A TARGET is MODULE:NAME, a Function class, its apply or any callable, or SPACE::OPERATOR, a registered operator,
    whose arguments --arg describes; or FILE.py or MODULE, with declarations. Exit status: 1 if a fault was found that
    is no edge; 2 if none was, but something could not be checked, the gradient could not be verified, declared calls or
    an --also were refused, or the check was interrupted; otherwise 0.
    """
    described: dict[str, Any] = {name: True for name in _FLAGS if given.pop(name)}
    listed = {
        "dtypes": (dtypes.replace(",", " ").split() or [dtypes]) if dtypes is not None else [],
        "also": list(also),
        "inplace": list(inplace),
        **{word: list(given.pop(word)) for word in _PROMISES},
    }
    described.update({word: values for word, values in listed.items() if values})
    try:
        _verify(targets, arguments, described, profile, report_)
        if examples is not None and not 0 < examples <= 1:
            raise UsageProblem(
                f"--examples must be a share of the examples: a number above 0, and at most 1, not {examples:g}"
            )
        if form not in formats.NAMES:
            raise UsageProblem(f"unknown format {form!r}; {choose_from(form, formats.NAMES)}")
        _verify_properties(given["properties"])
        _verify_folder(scripts)
        if only is not None:
            # Child processes inherit it.
            os.environ[implementations.DEVICES] = only
        # What a package of --import prints is no part of the results.
        with redirect_stdout(sys.stderr if form in formats.ALONE else sys.stdout):
            implementations.check_version(serving(implementation))
    except (UsageProblem, Unavailable) as problem:
        raise Problem(str(problem)) from None
    interrupts = _Interrupts()
    edges = given.pop("edges")
    run = _Run(implementation, scripts, report_, {**given, "profile": profile}, interrupts, form, edges=edges)
    try:
        with interrupts.heeded():
            status = combined(*[run.of(Plan(target, arguments, described, examples=examples)) for target in targets])
            if len(run.statuses) > 1:
                echo(summary(run.statuses, run.with_edges, run.differing), err=run.is_alone)
            # For a person who met the words for the first time; in a file they would be another result.
            if status != HOLDS and run.functions and sys.stdout.isatty():
                echo("what the words mean: autograd-conformance list verdicts", err=run.is_alone)
    except KeyboardInterrupt as interrupt:
        run.refuse("check", str(interrupt) or INTERRUPTED)
        run.tell(UNDECIDED)
        raise Problem(str(interrupt) or INTERRUPTED) from None
    run.tell(status)
    sys.exit(status)


class _Interrupts:
    """Ctrl-C, and the signal with which other programs end this one: both raise KeyboardInterrupt."""

    def __init__(self) -> None:
        self._waits, self._arrived = False, ""

    @contextmanager
    def heeded(self) -> Iterator[None]:
        """A context in which they are heeded."""
        # Only the main thread can set handlers.
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.signal(number, self._handle) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _handle(self, number: int, _: Any) -> None:
        first, self._arrived = not self._arrived, INTERRUPTED if number == signal.SIGINT else "terminated"
        if not (self._waits and first):
            raise KeyboardInterrupt(self._arrived)

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """A context in which the first one waits for `verify_none`: it must not come while something is printed."""
        self._waits = True
        try:
            yield
        finally:
            self._waits = False

    def verify_none(self) -> None:
        """Raise KeyboardInterrupt if one has arrived."""
        if self._arrived:
            raise KeyboardInterrupt(self._arrived)


def _verify(
    targets: tuple[str, ...],
    arguments: tuple[str, ...],
    described: dict[str, Any],
    profile: str,
    report_: Path | None,
) -> None:
    """Raise UsageProblem for arguments that do not go together."""
    if profile not in _PROFILES:
        raise UsageProblem(f"unknown profile {profile!r}; {choose_from(profile, _PROFILES)}")
    if len(targets) > 1 and (arguments or report_ is not None):
        option = "--arg" if arguments else "--report"
        raise UsageProblem(f"{option} needs a single target, but {len(targets)} are given; check them one by one")
    if described and not arguments:
        words = ", ".join(f"--{word.replace('_', '-')}" for word in described)
        raise UsageProblem(
            f"{words} needs --arg; for a declaration write it there: Declaration(..., {next(iter(described))}=...)"
        )
    if report_ is not None:
        named = {f"the target {target}": Path(target) for target in targets}
        files.verify([files.Output(report_, files.REPORT)], named)


def _verify_properties(patterns: str | None) -> None:
    """Raise UsageProblem for patterns that match no property."""
    try:
        matching("property", without_variants(patterns), PROPERTIES, command="autograd-conformance list properties")
    except UsageProblem:
        for pattern in map(str.strip, (patterns or "").split(",")):
            clauses = [name for name in CLAUSES if fnmatchcase(name, pattern)]
            if clauses and not any(fnmatchcase(name, pattern) for name in PROPERTIES):
                raise UsageProblem(
                    f"{clauses[0]} is a clause, which only run checks: autograd-conformance run --properties "
                    f"{pattern}; give properties here: autograd-conformance list properties"
                ) from None
        raise


def _verify_folder(path: Path) -> None:
    """Raise UsageProblem for a folder of scripts that cannot be made; makes nothing."""
    there = next(place for place in (path, *path.absolute().parents) if place.exists())
    if there.is_dir() and os.access(there, os.W_OK):
        return
    reason = "permission denied" if there.is_dir() else f"{there} is not a folder"
    raise UsageProblem(f"scripts cannot be written to {path}: {reason}; choose another folder with --scripts DIR")


@dataclass(frozen=True)
class _Run:
    """The options for checking targets."""

    implementation: str
    scripts: Path
    kept: Path | None
    options: dict[str, Any]
    interrupts: _Interrupts
    form: str = formats.TEXT
    functions: list[dict[str, Any]] = field(default_factory=list)
    problems: list[dict[str, str]] = field(default_factory=list)
    statuses: list[tuple[str, int]] = field(default_factory=list)
    with_edges: list[str] = field(default_factory=list)
    differing: list[str] = field(default_factory=list)
    edges: bool = False

    @property
    def is_alone(self) -> bool:
        """Whether stdout has the results for another program, and nothing else."""
        return self.form in formats.ALONE

    def refuse(self, target: str, problem: str) -> None:
        """Something could not be checked."""
        self.problems.append({"target": target, "message": problem})

    def tell(self, status: int) -> None:
        """Print what was found for another program, if that is asked for."""
        if self.form in formats.FORMATS:
            document = findings.document(status, self.implementation, self.functions, self.problems)
            text = formats.FORMATS[self.form](document)
            if text:
                echo(text)

    def of(self, plan: Plan) -> int:
        """Check one target and print the results. Returns the exit status."""
        display = Display(err=self.is_alone)
        announcer = None
        try:
            with tempfile.TemporaryDirectory(prefix="autograd-conformance-") as folder, display.shown():
                found, names_of_drafts = self._found(plan, display)
                names = matching("Function", self.options["functions"], (*found.plan.facts, *found.problems))
                found = found.of(names)
                announcer = Announcer(
                    found, display, self.scripts, implementation=self.implementation, edges=self.edges,
                    drafted=names_of_drafts,
                )  # fmt: skip
                if found.plan.facts:
                    self._follow(found.plan, Path(folder), display, announcer)
        except UsageProblem as problem:
            echo(f"Error: {problem}", err=True)
            self.refuse(plan.target, str(problem))
            return UNDECIDED
        finally:
            if announcer is not None:
                self._keep(announcer)
        problems, wrong = announcer.found.problems, announcer.found.wrong
        for name, sentence in problems.items():
            echo(sentence if name in wrong else f"Error: {sentence}", err=name not in wrong or self.is_alone)
        statuses = {**announcer.statuses, **{name: FAILS if name in wrong else UNDECIDED for name in problems}}
        self.statuses.extend(statuses.items())
        self.with_edges.extend(announcer.with_edges)
        self.differing.extend(announcer.differing)
        return combined(*statuses.values())

    def _found(self, plan: Plan, display: Display) -> tuple[child_discovery.Found, dict[str, str]]:
        """What is found out before the check. If a module declares nothing, what its code suggests is assumed.

        Then there are also the full names of the Functions, by those of their declarations.
        """
        options: dict[str, Any] = {"seconds": self.options["time_limit"], "called": display.find_out}
        try:
            return child_discovery.find_out(plan, self.implementation, **options), {}
        except Undeclared:
            drafts = assumed(plan.target, self.implementation, self.scripts, **options)
        for sentence in drafts.sentences:
            echo(sentence, err=self.is_alone)
        left_out = {name: f"{name} is left out: {why}" for name, why in drafts.left_out.items()}
        if not drafts.sentences:
            raise UsageProblem("; ".join(left_out.values()))
        found = child_discovery.find_out(Plan(str(drafts.path), examples=plan.examples), self.implementation, **options)
        found.problems.update(left_out)
        return found, drafts.names

    def _keep(self, announcer: Announcer) -> None:
        """Keep what was found, also if the check is interrupted."""
        self.functions.extend(announcer.functions)
        for name, sentence in announcer.found.problems.items():
            self.refuse(name, sentence)

    def _follow(self, plan: Plan, folder: Path, display: Display, announcer: Announcer) -> None:
        """Run the checks, and announce what they find."""
        path = folder / "plan.json"
        plan.write(path)
        deviations = implementations.load(self.implementation).deviations
        # The plan has the chosen Functions alone.
        options = {**self.options, "functions": None}
        following = Following(folder, options, self.implementation, deviations)
        display.follow(following)
        unfinished = "the checks ended too early"
        with self.interrupts.waiting():
            try:
                for line in following.lines(path, self.kept):
                    announcer.note(line)
                    self.interrupts.verify_none()
                unfinished = ""
            except UsageProblem:
                # It says why nothing was checked.
                unfinished = unfinished if following.results else ""
                raise
            except KeyboardInterrupt as interrupt:
                unfinished = str(interrupt)
                for line in following.rest():
                    announcer.note(line)
                raise
            finally:
                announcer.end(unfinished, following)
