"""``autograd-conformance compare``, ``accept`` and ``merge``: baselines, and comparisons with an earlier run."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from autograd_conformance.harness.commands import Problem
from autograd_conformance.harness.outcomes import UsageProblem
from autograd_conformance.harness.reports import baseline, cost_changes, gate, ndjson
from autograd_conformance.harness.reports.baseline import Baseline
from autograd_conformance.harness.running import shards
from autograd_conformance.harness.views import regressions

_FILE = click.Path(path_type=Path)


@click.command()
@click.argument("base", type=_FILE)
@click.argument("new", type=_FILE)
@click.option("--verify", metavar="COMMAND",
              help="Run the new counterexamples on the old implementation: the autograd-conformance command of an "
              "environment that has it.")  # fmt: skip
@click.option("--cost", is_flag=True, help="Compare the costs in two reports of runs with --cost.")
def compare(base: Path, new: Path, verify: str | None, cost: bool) -> None:
    """Compare the report NEW with BASE, a baseline or an older report. Exit status 1 if something is worse."""
    if cost:
        sys.exit(_costs(base, new))
    try:
        old, examples = _read(base)
        lines = ndjson.read(new)
        found = baseline.of_report(new, lines)
        gate.verify_alike(old, found.parameters, where=str(base))
        elsewhere = _elsewhere(verify, lines, new) if verify is not None else {}
    except UsageProblem as problem:
        raise Problem(str(problem)) from None
    sys.exit(_print(gate.Gate(old, new, lines, examples, elsewhere), base))


def _costs(base: Path, new: Path) -> int:
    """Print the change of each cost. Returns the exit status. Raises Problem."""
    try:
        found = sorted(cost_changes.changes(base, new), key=lambda change: not change.worse)
    except UsageProblem as problem:
        raise Problem(str(problem)) from None
    for change in found:
        click.echo(str(change))
    return int(any(change.worse for change in found))


def compare_with_baseline(base: Baseline, where: Path, path: Path) -> int:
    """Compare a report with a baseline and print the result. Returns the exit status. Raises Problem."""
    try:
        lines = ndjson.read(path)
        gate.verify_alike(base, baseline.of_report(path, lines).parameters, where=str(where))
        return _print(gate.Gate(base, path, lines), where)
    except UsageProblem as problem:
        raise Problem(f"the gate cannot pass: {problem}") from None


def _print(found: gate.Gate, where: Path) -> int:
    for line in regressions.text(found):
        click.echo(line)
    if any(change.kind != "same" for change in found.changes):
        target = f" -o {where}" if baseline.is_one(where) else ""
        click.echo(f"to take this run as the baseline: autograd-conformance accept {found.path}{target}")
    return 0 if found.holds else 1


def _read(path: Path) -> tuple[Baseline, dict[str, int]]:
    """A baseline or a report as a baseline; for a report also the number of examples of each test id."""
    if path.is_file() and path.read_bytes()[:1] == b"{":
        lines = ndjson.read(path)
        return baseline.of_report(path, lines), {line["id"]: line["examples"] for line in lines[1:-1]}
    return baseline.read(path), {}


def _elsewhere(command: str, new: list[ndjson.Line], path: Path) -> dict[str, str]:
    """The results of a report's counterexamples in another environment. Raises UsageProblem."""
    if shutil.which(command) is None:
        raise UsageProblem(f"--verify {command} cannot be run: there is no such program")
    if not any("failure" in line for line in new):
        return {}
    with TemporaryDirectory() as folder:
        target = Path(folder, "elsewhere.ndjson")
        words = [command, "run", new[0]["implementation"]["named"], "--profile", "replay", "--replay", str(path)]
        try:
            done = subprocess.run([*words, "--report", str(target)], capture_output=True, text=True, check=False)
        except OSError as problem:
            raise UsageProblem(f"--verify {command} cannot be run: {problem.strerror}") from None
        if done.returncode not in (0, 1) or not target.exists():
            output = (done.stderr or done.stdout).strip().splitlines() or [
                f"exit status {done.returncode}, and no report"
            ]
            raise UsageProblem(
                f"--verify {command} did not run the counterexamples: {output[-1]}; give the autograd-conformance "
                "command of the environment that has the old implementation"
            )
        lines = ndjson.read(target)
    return {line["id"]: f"{line['outcome']}, on {_version(lines)}" for line in lines if line["kind"] == "result"}


def _version(lines: list[ndjson.Line]) -> str:
    return str(lines[0]["implementation"]["version"])


@click.command()
@click.argument("report_", metavar="REPORT", type=_FILE)
@click.option("-o", "--output", default=baseline.DEFAULT_PATH, show_default=True, type=_FILE, metavar="FILE",
              help="Baseline to write.")  # fmt: skip
def accept(report_: Path, output: Path) -> None:
    """Write REPORT as the baseline with which later runs are compared."""
    try:
        new = baseline.of_report(report_, ndjson.read(report_))
        if new.parameters["profile"] == "replay":
            raise UsageProblem(
                f"{report_} is of the profile replay, which runs only kept counterexamples; accept a complete run"
            )
        old = _before(output)
        text = baseline.text(new)
    except UsageProblem as problem:
        raise Problem(str(problem)) from None
    unfinished = output.with_name(f"{output.name}.new")
    try:
        unfinished.write_text(text, encoding="utf-8", newline="\n")
        os.replace(unfinished, output)
    except OSError as problem:
        raise Problem(f"the baseline cannot be written to {output}: {problem.strerror}; choose with -o FILE") from None
    for line in _differences(old, new) if old else ():
        click.echo(line)
    counts = Counter(entry.outcome for entry in new.entries.values())
    click.echo(f"{output}: {', '.join(f'{number} {outcome}' for outcome, number in counts.most_common())}")


def _before(path: Path) -> Baseline | None:
    """The existing baseline; None if there is none or it is damaged. Raises UsageProblem for another file."""
    if not path.exists():
        return None
    if not baseline.is_one(path):
        raise UsageProblem(f"{path} is not a baseline and was not changed; choose another file with -o FILE")
    try:
        return baseline.read(path)
    except UsageProblem as problem:
        click.echo(f"warning: the old baseline was replaced without a comparison: {problem}", err=True)
        return None


def _differences(old: Baseline, new: Baseline) -> Iterator[str]:
    """The differences between two baselines, a line each."""
    before, after = ({**each.parameters, "version": each.version} for each in (old, new))
    for name in after:
        if before.get(name) != after[name]:
            yield f"{name}: {before.get(name)} -> {after[name]}"
    for change in gate.changes(old, new):
        if change.old != change.new:
            yield f"{change.id}: {change.old} -> {change.new}"


@click.command()
@click.argument("shards_", metavar="SHARD...", nargs=-1, type=_FILE)
@click.option("-o", "--output", default=ndjson.DEFAULT_PATH, show_default=True, type=_FILE, metavar="FILE",
              help="Report to write.")  # fmt: skip
def merge(shards_: tuple[Path, ...], output: Path) -> None:
    """Merge the reports of all SHARDs of a run into one report."""
    if not shards_:
        raise Problem("give the reports of all shards, as in: autograd-conformance merge shard-*.ndjson -o all.ndjson")
    try:
        places = [path.resolve() for path in shards_]
        if len(set(places)) < len(places):
            raise UsageProblem("a shard's report is given twice")
        if output.resolve() in places:
            raise UsageProblem(f"-o {output} would overwrite a shard; choose another file")
        lines = shards.merged({path: ndjson.read(path) for path in shards_})
        ndjson.check_path(output, option="-o")
        file = ndjson.ReportFile(output)
        for line in lines:
            file.write(line)
        file.close()
    except UsageProblem as problem:
        raise Problem(str(problem)) from None
    except OSError as problem:
        raise Problem(f"the report cannot be written to {output}: {problem.strerror}; choose with -o FILE") from None
    click.echo(f"{output}: {len(lines) - 2} test ids of {len(shards_)} shards; {lines[-1]['verdict']}")
