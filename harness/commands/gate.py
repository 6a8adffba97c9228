"""``autograd-conformance compare``, ``accept`` and ``merge``: baselines, and comparisons with an earlier run."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from autograd_conformance.harness.commands import Problem, echo
from autograd_conformance.harness.outcomes import FAILS, HOLDS, UsageProblem
from autograd_conformance.harness.reports import baseline, files, gate, ndjson
from autograd_conformance.harness.reports.baseline import Baseline
from autograd_conformance.harness.running import corpus, shards
from autograd_conformance.harness.views import describe, regressions
from autograd_conformance.harness.watching import known

_FILE = click.Path(path_type=Path)


@click.command()
@click.argument("base", type=_FILE)
@click.argument("new", type=_FILE)
@click.option("--verify", metavar="COMMAND",
              help="Run the new counterexamples on the old implementation: the autograd-conformance command of an "
              "environment that has it.")  # fmt: skip
@click.option("--other-suite", is_flag=True, help="Compare even if BASE was made with another suite.")
def compare(base: Path, new: Path, verify: str | None, other_suite: bool) -> None:
    """Compare the report NEW with BASE, a baseline or an older report. Exit status 1 if something is worse."""
    try:
        old, examples = _read(base)
        lines = ndjson.read(new)
        found = baseline.of_report(new, lines)
        verify_comparable(old, found, base, other_suite=other_suite)
        compared = gate.Gate(old, new, lines, examples)
        if verify is not None:
            compared = replace(compared, elsewhere=_elsewhere(verify, compared))
    except UsageProblem as problem:
        raise Problem(str(problem)) from None
    sys.exit(_print(compared, base))


def verify_comparable(base: Baseline, new: Baseline, where: Path, *, other_suite: bool) -> None:
    """Raise UsageProblem unless a run can be compared with a baseline. Prints warnings."""
    gate.verify_alike(base, new.parameters, where=str(where))
    if not other_suite:
        gate.verify_suite(base, new.sources, where=str(where))
    for warning in gate.warnings(base, new.sources, where=str(where)):
        echo(f"warning: {warning}", err=True)


def compare_with_baseline(
    base: Baseline, where: Path, path: Path, lines: list[ndjson.Line], *, other_suite: bool
) -> int:
    """Compare a report with a baseline and print the result. Returns the exit status. Raises Problem."""
    try:
        verify_comparable(base, baseline.of_report(path, lines), where, other_suite=other_suite)
        return _print(gate.Gate(base, path, lines), where)
    except UsageProblem as problem:
        raise Problem(f"the gate cannot pass: {problem}") from None


def _print(found: gate.Gate, where: Path) -> int:
    for line in regressions.text(found):
        echo(line)
    if any(change.kind != "same" for change in found.changes):
        own = f"{found.lines[0]['implementation']['name']}.baseline" if baseline.is_shipped(where) else str(where)
        target = f" -o {own}" if baseline.is_one(where) else ""
        echo(f"to take this run as the baseline: autograd-conformance accept {found.path}{target}")
    return HOLDS if found.holds else FAILS


def _read(path: Path) -> tuple[Baseline, dict[str, int]]:
    """A baseline or a report as a baseline; for a report also the number of examples of each test id."""
    if path.is_file() and path.read_bytes()[:1] == b"{":
        lines = ndjson.read(path)
        return baseline.of_report(path, lines), {line["id"]: line["examples"] for line in lines[1:-1]}
    return baseline.read(path), {}


def _elsewhere(command: str, compared: gate.Gate) -> dict[str, str]:
    """The results of each fault's counterexample in another environment. Raises UsageProblem."""
    if shutil.which(command) is None:
        raise UsageProblem(f"--verify {command} cannot be run: there is no such program")
    shown = regressions.by_cause(compared)[: regressions.IN_FULL]
    failing = [line for cause in shown for line in cause.to_rerun]
    kept = [one for one in corpus.of_report(failing, compared.path) if one.call or one.drawn]
    if not kept:
        return {}
    with TemporaryDirectory() as folder:
        target, source = Path(folder, "elsewhere.ndjson"), Path(folder, corpus.DEFAULT_PATH)
        source.write_text("".join(f"{one}\n" for one in kept), encoding="utf-8")
        named = compared.lines[0]["implementation"]["named"]
        words = [command, "run", named, "--profile", "replay", "--replay", str(source)]
        words += describe.packages(compared.lines[0])
        try:
            done = subprocess.run([*words, "--report", str(target)], capture_output=True, text=True, check=False)
        except OSError as problem:
            raise UsageProblem(f"--verify {command} cannot be run: {problem.strerror}") from None
        if done.returncode not in (HOLDS, FAILS) or not target.exists():
            output = (done.stderr or done.stdout).strip().splitlines() or [
                f"exit status {done.returncode}, and no report"
            ]
            raise UsageProblem(
                f"--verify {command} did not run the counterexamples: {output[-1]}; give the autograd-conformance "
                "command of the environment that has the old implementation"
            )
        lines = ndjson.read(target)
    found = {line["id"]: f"{line['outcome']}, on {_version(lines)}" for line in lines if line["kind"] == "result"}
    return {line["id"]: found[line["id"]] for line in failing if line["id"] in found}


def _version(lines: list[ndjson.Line]) -> str:
    return str(lines[0]["implementation"]["version"])


@click.command()
@click.argument("report_", metavar="REPORT", type=_FILE)
@click.option("-o", "--output", default=baseline.DEFAULT_PATH, show_default=True, type=_FILE, metavar="FILE",
              help="Baseline to write.")  # fmt: skip
def accept(report_: Path, output: Path) -> None:
    """Write REPORT as the baseline with which later runs are compared.

    Of a report of watch (FILE.json), write the faults that it has: watch --baseline fails for others.
    """
    target = files.Output(output, files.BASELINE, "the baseline", "-o")
    try:
        files.verify([target], {"the report": report_})
        if report_.suffix == ".json":
            target.write(known.of_document(report_))
            echo(f"{output}: {len(known.read(output))} known faults")
            return
        new = baseline.of_report(report_, ndjson.read(report_))
        if new.parameters["profile"] == "replay":
            raise UsageProblem(
                f"{report_} is of the profile replay, which runs only kept counterexamples; accept a complete run"
            )
        old = _before(output)
        target.write(baseline.text(new))
    except UsageProblem as problem:
        raise Problem(str(problem)) from None
    for line in _differences(old, new) if old else ():
        echo(line)
    counts = Counter(entry.outcome for entry in new.entries.values())
    echo(f"{output}: {', '.join(f'{number} {outcome}' for outcome, number in counts.most_common())}")


def _before(path: Path) -> Baseline | None:
    """The existing baseline; None if there is none or it is damaged."""
    if not path.exists() or not path.stat().st_size:
        return None
    try:
        return baseline.read(path)
    except UsageProblem as problem:
        echo(f"warning: the old baseline was replaced without a comparison: {problem}", err=True)
        return None


def _differences(old: Baseline, new: Baseline) -> Iterator[str]:
    """The differences between two baselines, a line each."""
    before, after = (
        {**each.parameters, "version": each.version, **{f"suite, {room}": d for room, d in each.sources.items()}}
        for each in (old, new)
    )
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
@click.option("--run-id", metavar="TEXT", help="Merge only reports of the run with this id.")
def merge(shards_: tuple[Path, ...], output: Path, run_id: str | None) -> None:
    """Merge the reports of all SHARDs of a run into one report."""
    if not shards_:
        raise Problem("give the reports of all shards, as in: autograd-conformance merge shard-*.ndjson -o all.ndjson")
    try:
        if any(files.same(one, other) for one, other in combinations(shards_, 2)):
            raise UsageProblem("a shard's report is given twice")
        target = files.Output(output, files.REPORT, option="-o")
        files.verify([target], {f"the shard {path}": path for path in shards_})
        reports = {path: ndjson.read(path) for path in shards_}
        lines = shards.merged(reports, run_id)
        target.write(ndjson.text(lines))
    except UsageProblem as problem:
        raise Problem(str(problem)) from None
    echo(f"{output}: {len(lines) - 2} test ids of {len(shards_)} shards; {lines[-1]['verdict']}")
    # As in a run of one part: one whose test is gone would hold for ever.
    gone = shards.without_test(reports)
    if gone:
        raise Problem(f"{corpus.in_words(gone)}; take what has no test any more out of the corpus")
