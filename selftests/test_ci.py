"""The workflows of docs/ci.md: their commands exist, and their steps do what the text says."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click
import pytest
import yaml

from autograd_conformance.harness import cli
from autograd_conformance.harness.catalogue import PACKAGE
from autograd_conformance.harness.reports import ndjson
from autograd_conformance.selftests.conftest import COMMAND, OUTSIDE

TEXT = (PACKAGE / "docs" / "ci.md").read_text()
GATE, NIGHTLY, GITLAB = re.findall(r"^```yaml\n(.*?)^```$", TEXT, re.M | re.S)

# Steps that need more than this machine: what is installed, and where it is proposed.
ELSEWHERE = ("Install", "Propose")


@dataclass(frozen=True)
class Step:
    """A step of a workflow that runs a script, with its job."""

    job: str
    name: str
    script: str


def github(text: str) -> Iterator[Step]:
    """The steps of a GitHub workflow that run a script."""
    for name, job in yaml.safe_load(text)["jobs"].items():
        yield from (Step(name, step["name"], step["run"].strip()) for step in job["steps"] if "run" in step)


def gitlab(text: str) -> Iterator[Step]:
    """The scripts of GitLab's jobs."""
    for name, job in yaml.safe_load(text).items():
        if "script" in job:
            yield Step(name, "script", "\n".join(job["script"]))


STEPS = {"gate": [*github(GATE)], "nightly": [*github(NIGHTLY)], "gitlab": [*gitlab(GITLAB)]}


def test_the_steps_are_found():
    told = {name: [f"{step.job}: {step.name}" for step in steps] for name, steps in STEPS.items()}
    assert told == {
        "gate": ["shard: Install", "shard: Run", "gate: Install", "gate: Merge", "gate: Gate", "gate: Tell"],
        "nightly": ["shard: Install", "shard: Run", "keep: Install", "keep: Tell", "keep: Keep", "keep: Propose"],
        "gitlab": ["shard: script", "gate: script"],
    }


def substituted(script: str, **values: str) -> str:
    """The script with what GitHub puts in its place."""
    return re.sub(r"\$\{\{ ([\w.]+) \}\}", lambda found: values[found[1].replace(".", "_")], script)


# The commands.


def commands() -> list[str]:
    """Every call of the command in the document, a line each."""
    blocks = re.findall(r"^```(?:yaml|console)\n(.*?)^```$", TEXT, re.M | re.S)
    inline = re.findall(r"`(autograd-conformance [^`]+)`", TEXT)
    lines = [line for text in blocks for line in re.sub(r"\\\n\s*", "", text).splitlines()]
    found = [line[line.index("autograd-conformance ") :] for line in lines if re.search(r"^\W*autograd-conf.* ", line)]
    return [substituted(line, matrix_shard="2") for line in [*found, *inline]]


def parse(line: str) -> None:
    """Let the command read a line without doing it. Raises click's exception for what it does not know."""
    words = shlex.split(re.split(r" (?:\||\|\||>>) ", line)[0].replace("$CI_NODE_INDEX/$CI_NODE_TOTAL", "2/4"))
    words = [re.sub(r"^\$GITHUB_RUN_NUMBER$", "17", word) for word in words[1:]]
    command = cli.main.commands[words[0]]
    command.make_context(words[0], words[1:])


@pytest.mark.parametrize("line", commands())
def test_every_command_can_be_given(line):
    parse(line)


@pytest.mark.parametrize("line", ["autograd-conformance run torch --shards 1/4", "autograd-conformance export"])
def test_a_command_that_cannot_be_given_is_found(line):
    with pytest.raises(click.ClickException):
        parse(line)


def test_there_are_commands():
    assert {line.split()[1] for line in commands()} == {"run", "accept", "keep", "merge", "compare", "export", "report"}
    assert len(commands()) >= 20


# The steps, run one by one as a runner does.

NARROW = ("--functions", "Exp,Square", "--properties", "VJP-FD,VJP-REF,VJP-NONE,VJP-UNUSED", "-n", "0")

# Stands for the command: it checks the model, by few tests.
SHIM = f"""#!/bin/bash
if [ "$1" = run ]; then
    shift 2
    words=()
    while [ $# -gt 0 ]; do
        if [ "$1" = --expect ]; then shift; else words+=("$1"); fi
        shift
    done
    set -- run model "${{words[@]}}" {shlex.join(NARROW)} $NARROWER
fi
exec {shlex.quote(COMMAND)} "$@"
"""

WRONG = """
from autograd_conformance.harness.checking.marks import holds


@holds("VJP-FD")
def test_it(subject, data):
    example = subject.example(data.draw(subject.calls(), label="call"))
    subject.assert_that(example.call.function != "Exp" or {right}, example.call, "rank", got=1, expected=2)


@holds("VJP-REF")
def test_reference(subject, data):
    example = subject.example(data.draw(subject.calls(), label="call"))
    subject.assert_close(example.call, example.names, got=example.run()[1], expected=example.expected.gradients())
"""


@dataclass
class Machine:
    """A folder with the checkout of a repository, and what runs a workflow's steps in it."""

    folder: Path

    def run(self, step: Step, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run a step as GitHub's runner does with ``shell: bash``."""
        path = f"{self.folder}/bin{os.pathsep}{os.environ['PATH']}"
        words = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c"]
        script = substituted(step.script, matrix_shard=environment.get("shard", ""))
        return subprocess.run(
            [*words, script], cwd=self.folder, capture_output=True, text=True, check=False, timeout=600,
            env={**OUTSIDE, "PATH": path, "NARROWER": "--suite suite", **environment},
        )  # fmt: skip

    def steps(self, name: str, job: str, **environment: str) -> dict[str, subprocess.CompletedProcess[str]]:
        """What came of each step of a job that can run here."""
        found = [step for step in STEPS[name] if step.job == job and step.name not in ELSEWHERE]
        return {step.name: self.run(step, **environment) for step in found}

    def breaks(self, broken: bool) -> None:
        """Let the suite find a fault, or find none."""
        (self.folder / "suite" / "test_it.py").write_text(WRONG.format(right=not broken))

    def statuses(self, name: str, job: str, **environment: str) -> dict[str, int]:
        """The exit status of each step of a job."""
        return {step: done.returncode for step, done in self.steps(name, job, **environment).items()}


@pytest.fixture(scope="session")
def first_machine(tmp_path_factory):
    """A machine with what the document's first commands make, of a run that held."""
    tmp_path = tmp_path_factory.mktemp("machine")
    for name in ("bin", "conformance", "suite"):
        (tmp_path / name).mkdir()
    shim = tmp_path / "bin" / "autograd-conformance"
    shim.write_text(SHIM)
    shim.chmod(0o755)
    found = Machine(tmp_path)
    found.breaks(False)
    first = re.search(r"A first run makes all three:\n\n```console\n(.*?)```", TEXT, re.S)[1]
    done = found.run(Step("", "", first.replace("$ ", "")))
    assert done.returncode == 0, done.stderr
    assert {path.name for path in (tmp_path / "conformance").iterdir()} == {
        "torch.baseline", "corpus.txt", "durations.ndjson",
    }  # fmt: skip
    return found


@pytest.fixture(scope="session")
def ready_machine(first_machine, tmp_path_factory):
    """The same, on which the shards of the gate have run."""
    found = copied(first_machine, tmp_path_factory.mktemp("ready"))
    assert shards(found) == [{"Run": 0}] * 4
    return found


def copied(machine, folder):
    shutil.copytree(machine.folder, folder, dirs_exist_ok=True)
    return Machine(folder)


@pytest.fixture
def machine(first_machine, tmp_path):
    return copied(first_machine, tmp_path)


@pytest.fixture
def ready(ready_machine, tmp_path):
    return copied(ready_machine, tmp_path)


def shards(machine, name="gate", numbers=(1, 2, 3, 4), **environment):
    return [machine.statuses(name, "shard", shard=str(n), **environment) for n in numbers]


def test_the_gate_passes_and_tells(ready, tmp_path):
    assert ready.statuses("gate", "gate", GITHUB_STEP_SUMMARY="summary.md") == {"Merge": 0, "Gate": 0, "Tell": 0}
    assert not ndjson.flaw(ndjson.read(tmp_path / "conformance.ndjson"))
    assert (tmp_path / "summary.md").read_text().startswith("### ✅ model ")
    assert json.loads((tmp_path / "site" / "badge.json").read_text())["color"] == "brightgreen"
    assert "<testsuites" in (tmp_path / "conformance.xml").read_text()
    assert (tmp_path / "site" / "index.html").exists()


def test_the_gate_fails_for_what_broke_until_that_is_accepted(machine, tmp_path):
    machine.breaks(True)
    assert shards(machine) == [{"Run": 0}] * 4
    told = machine.steps("gate", "gate", GITHUB_STEP_SUMMARY="summary.md")
    assert {name: done.returncode for name, done in told.items()} == {"Merge": 0, "Gate": 1, "Tell": 0}
    assert "VJP-FD[Exp-cpu]" in (tmp_path / "gate.txt").read_text()
    assert (tmp_path / "summary.md").read_text().startswith("### ❌ model ")
    accept = re.search(r"accept it in the same pull request.*?```console\n\$ (.*?)\n```", TEXT, re.S)[1]
    assert machine.run(Step("", "", accept)).returncode == 0
    assert machine.statuses("gate", "gate", GITHUB_STEP_SUMMARY="again.md")["Gate"] == 0


@pytest.mark.parametrize("lost", ["report", "end"])
def test_a_lost_shard_fails_the_gate(ready, tmp_path, lost):
    path = tmp_path / "shard-3.ndjson"
    lines = path.read_text().splitlines(keepends=True)
    path.unlink()
    if lost == "end":
        path.write_text("".join(lines[:-1]))
    statuses = ready.statuses("gate", "gate", GITHUB_STEP_SUMMARY="summary.md")
    assert statuses == {"Merge": 2, "Gate": 2, "Tell": 2}


def test_a_shard_that_cannot_run_fails(machine):
    assert shards(machine, numbers=(5,)) == [{"Run": 1}]


def test_a_night_is_kept_and_then_run_by_the_gate(machine, tmp_path):
    assert shards(machine, "nightly", GITHUB_RUN_NUMBER="17") == [{"Run": 0}] * 4
    before = (tmp_path / "conformance" / "corpus.txt").read_text()
    told = {"GITHUB_STEP_SUMMARY": "summary.md", "GITHUB_RUN_NUMBER": "17"}
    assert machine.statuses("nightly", "keep", **told) == {"Tell": 0, "Keep": 0}
    assert (tmp_path / "conformance" / "corpus.txt").read_text() == before
    machine.breaks(True)
    assert shards(machine, "nightly", GITHUB_RUN_NUMBER="17") == [{"Run": 0}] * 4
    assert machine.statuses("nightly", "keep", **told) == {"Tell": 0, "Keep": 0}
    after = (tmp_path / "conformance" / "corpus.txt").read_text()
    assert "VJP-FD[Exp-cpu]" in set(after.split()) - set(before.split())
    assert shards(machine) == [{"Run": 0}] * 4
    assert machine.statuses("gate", "gate", GITHUB_STEP_SUMMARY="summary.md")["Gate"] == 1


def test_gitlabs_scripts(machine, tmp_path):
    machine.breaks(True)
    run, gate = ("\n".join(row for row in step.script.splitlines() if "pip" not in row) for step in STEPS["gitlab"])
    for number in "1234":
        assert machine.run(Step("", "", run), CI_NODE_INDEX=number, CI_NODE_TOTAL="4").returncode == 0
    assert machine.run(Step("", "", gate)).returncode == 1
    assert (tmp_path / "conformance.xml").exists()
    assert (tmp_path / "conformance.md").exists()
    assert machine.run(Step("", "", "autograd-conformance accept conformance.ndjson -o conformance/torch.baseline"))
    assert machine.run(Step("", "", gate)).returncode == 0
