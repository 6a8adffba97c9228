"""``autograd-conformance compare``, ``accept`` and ``merge``: a run held against an earlier one."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from autograd_conformance.harness import baseline, costs, gate, report, shards
from autograd_conformance.harness.baseline import Baseline
from autograd_conformance.harness.commands import Problem
from autograd_conformance.harness.outcomes import UsageProblem

_FILE = click.Path(path_type=Path)


@click.command()
@click.argument("base", type=_FILE)
@click.argument("new", type=_FILE)
@click.option("--verify", metavar="COMMAND",
              help="The autograd-conformance of an environment that has the old implementation, "
              "to run the new counterexamples there.")  # fmt: skip
@click.option("--cost", is_flag=True, help="Compare what custom Functions cost, of two reports of runs with --cost.")
def compare(base: Path, new: Path, verify: str | None, cost: bool) -> None:
    """Hold the report NEW against BASE, a baseline or an older report; exit status 1 if something is worse."""
    if cost:
        sys.exit(_costs(base, new))
    try:
        old, examples = _read(base)
        lines = report.read(new)
        found = baseline.of_report(new, lines)
        gate.verify_alike(old, found.parameters, where=str(base))
        elsewhere = _elsewhere(verify, lines[0], new) if verify else {}
    except UsageProblem as problem:
        raise Problem(str(problem)) from None
    sys.exit(_told(gate.Gate(old, new, lines, examples, elsewhere), base))


def _costs(base: Path, new: Path) -> int:
    """Tell what became of each cost; the exit status. Raises Problem."""
    try:
        found = sorted(costs.changes(base, new), key=lambda change: not change.worse)
    except UsageProblem as problem:
        raise Problem(str(problem)) from None
    for change in found:
        click.echo(str(change))
    return int(any(change.worse for change in found))


def hold(base: Baseline, where: Path, path: Path) -> int:
    """Tell what a report says beside a baseline; the exit status. Raises Problem for an incomplete report."""
    try:
        lines = report.read(path)
        gate.verify_alike(base, baseline.of_report(path, lines).parameters, where=str(where))
        return _told(gate.Gate(base, path, lines), where)
    except UsageProblem as problem:
        raise Problem(f"the gate cannot pass: {problem}") from None


def _told(found: gate.Gate, where: Path) -> int:
    for line in found.told():
        click.echo(line)
    if any(change.kind != "same" for change in found.changes):
        target = f" -o {where}" if baseline.is_one(where) else ""
        click.echo(f"to take this run as the baseline: autograd-conformance accept {found.path}{target}")
    return 0 if found.holds else 1


def _read(path: Path) -> tuple[Baseline, dict[str, int]]:
    """A baseline or a report; of the latter also how many examples each test id tried."""
    if path.is_file() and path.read_bytes()[:1] == b"{":
        lines = report.read(path)
        return baseline.of_report(path, lines), {line["id"]: line["examples"] for line in lines[1:-1]}
    return baseline.read(path), {}


def _elsewhere(command: str, header: report.Line, path: Path) -> dict[str, str]:
    """What came of a report's counterexamples in another environment. Raises UsageProblem."""
    with TemporaryDirectory() as folder:
        target = Path(folder, "elsewhere.ndjson")
        words = [command, "run", header["implementation"]["named"], "--profile", "replay", "--replay", str(path)]
        try:
            done = subprocess.run([*words, "--report", str(target)], capture_output=True, text=True, check=False)
        except OSError as problem:
            raise UsageProblem(f"--verify {command} cannot be run: {problem.strerror}") from None
        if done.returncode not in (0, 1) or (done.returncode == 1 and not target.exists()):
            said = (done.stderr or done.stdout).strip().splitlines() or [f"exit status {done.returncode}"]
            raise UsageProblem(f"--verify {command} did not run the counterexamples: {said[-1]}")
        lines = report.read(target) if target.exists() else []
    return {line["id"]: f"{line['outcome']}, on {_version(lines)}" for line in lines if line["kind"] == "result"}


def _version(lines: list[report.Line]) -> str:
    return str(lines[0]["implementation"]["version"])


@click.command()
@click.argument("report_", metavar="REPORT", type=_FILE)
@click.option("-o", "--output", default=baseline.DEFAULT_PATH, show_default=True, type=_FILE, metavar="FILE",
              help="The baseline to write.")  # fmt: skip
def accept(report_: Path, output: Path) -> None:
    """Take what REPORT says as the baseline: what later runs are held against."""
    try:
        new = baseline.of_report(report_, report.read(report_))
        if new.parameters["profile"] == "replay":
            raise UsageProblem(f"{report_} is of the profile replay, which runs what failed once; accept a whole run")
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
    """The baseline that is there, None for none and for a damaged one. Raises UsageProblem for another file."""
    if not path.exists():
        return None
    if not baseline.is_one(path):
        raise UsageProblem(f"{path} is no baseline, and is left as it is; choose another file with -o FILE")
    try:
        return baseline.read(path)
    except UsageProblem as problem:
        click.echo(f"warning: what was there is not compared: {problem}", err=True)
        return None


def _differences(old: Baseline, new: Baseline) -> Iterator[str]:
    """What a baseline says that the one before did not."""
    heads = ({**b.parameters, "version": b.version} for b in (old, new))
    before, after = heads
    for name in after:
        if before.get(name) != after[name]:
            yield f"{name}: {before.get(name)} -> {after[name]}"
    for change in gate.changes(old, new):
        if change.old != change.new:
            yield f"{change.id}: {change.old} -> {change.new}"


@click.command()
@click.argument("shards_", metavar="SHARD...", nargs=-1, type=_FILE)
@click.option("-o", "--output", default=report.DEFAULT_PATH, show_default=True, type=_FILE, metavar="FILE",
              help="The report to write.")  # fmt: skip
def merge(shards_: tuple[Path, ...], output: Path) -> None:
    """Put the reports of all SHARDs of a run together into the report of the run."""
    if not shards_:
        raise Problem("name the shards' reports, as in: autograd-conformance merge shard-*.ndjson -o all.ndjson")
    try:
        places = [path.resolve() for path in shards_]
        if len(set(places)) < len(places):
            raise UsageProblem("a shard's report is given twice")
        if output.resolve() in places:
            raise UsageProblem(f"-o {output} would overwrite a shard; choose another file")
        lines = shards.merged({path: report.read(path) for path in shards_})
        report.check_path(output, option="-o")
        file = report.ReportFile(output)
        for line in lines:
            file.write(line)
        file.close()
    except UsageProblem as problem:
        raise Problem(str(problem)) from None
    except OSError as problem:
        raise Problem(f"the report cannot be written to {output}: {problem.strerror}; choose with -o FILE") from None
    click.echo(f"{output}: {len(lines) - 2} test ids of {len(shards_)} shards; {lines[-1]['verdict']}")
