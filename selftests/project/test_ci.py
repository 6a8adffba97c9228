"""The workflows of docs/ci.md: their commands exist, and their steps do what the text says."""

from __future__ import annotations

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
from autograd_conformance.selftests.conftest import OUTSIDE
from autograd_conformance.selftests.project.actions import Runner
from autograd_conformance.selftests.support import warm

TEXT = (PACKAGE / "docs" / "ci.md").read_text()
GATE, NIGHTLY, PLATFORMS, GITLAB, KUBERNETES, CHANGES, HOOKS = re.findall(r"^```yaml\n(.*?)^```$", TEXT, re.M | re.S)

SLURM, SLURM_GATE, KUBERNETES_GATE = re.findall(r"^```bash\n(.*?)^```$", TEXT, re.M | re.S)


@dataclass(frozen=True)
class Step:
    """A script of a document, with its job."""

    job: str
    script: str


def gitlab(text: str) -> Iterator[Step]:
    """The scripts of GitLab's jobs."""
    for name, job in yaml.safe_load(text).items():
        if "script" in job:
            yield Step(name, "\n".join(job["script"]))


# Rows that install something.
INSTALLS = ("pip install", "python -m autograd_conformance.harness.provenance.fork")


# The commands.


def commands() -> list[str]:
    """Every call of the command in the document, a line each."""
    blocks = re.findall(r"^```(?:yaml|console|bash)\n(.*?)^```$", TEXT, re.M | re.S)
    inline = re.findall(r"`(autograd-conformance [^`]+)`", TEXT)
    lines = [line for text in blocks for line in re.sub(r"\\\n\s*", "", text).splitlines()]
    found = [line[line.index("autograd-conformance ") :] for line in lines if re.search(r"^\W*autograd-conf.* ", line)]
    return [*found, *inline]


def parse(line: str) -> None:
    """Let the command read a line without doing it. Raises click's exception for what it does not know."""
    words = shlex.split(re.split(r" (?:\||\|\||>>) ", line)[0])
    command = cli.main.get_command(None, words[1])
    command.make_context(words[1], words[2:])


@pytest.mark.parametrize("line", commands())
def test_every_command_can_be_given(line):
    parse(line)


@pytest.mark.parametrize("line", ["autograd-conformance run torch --shards 1/4", "autograd-conformance export"])
def test_a_command_that_cannot_be_given_is_found(line):
    with pytest.raises(click.ClickException):
        parse(line)


def test_there_are_commands():
    assert {line.split()[1] for line in commands()} == {"run", "accept", "keep", "merge", "compare", "export", "report"}
    assert len(commands()) >= 15


# The steps, run one by one as a runner does.

# The exit statuses of a shard's steps.
SHARD = {"Run": 0, "Summarize": 0}

NARROW = ("--functions", "Exp,Square", "--properties", "VJP-FD,VJP-REF,VJP-NONE,VJP-UNUSED", "-n", "0")

# Stands for the command: it checks the model, by few tests.
SHIM = """#!/bin/bash
if [ "$1" = run ]; then
    shift 2
    words=()
    while [ $# -gt 0 ]; do
        if [ "$1" = --expect ]; then shift; else words+=("$1"); fi
        shift
    done
    set -- run model NARROW $NARROWER "${words[@]}"
fi
exec COMMAND "$@"
"""

WRONG = """
from pathlib import Path

from autograd_conformance.harness.testing.marks import holds

# The tests are the same, whatever they find.
RIGHT = not Path(__file__).with_name("wrong").exists()


@holds("VJP-FD")
def test_it(subject, data):
    example = subject.example(data.draw(subject.calls(), label="call"))
    subject.assert_that(example.call.function != "Exp" or RIGHT, example.call, "rank", got=1, expected=2)


@holds("VJP-REF")
def test_reference(subject, data):
    example = subject.example(data.draw(subject.calls(), label="call"))
    subject.assert_close(example.call, example.names, got=example.run()[1], expected=example.expected.gradients())
"""


class Machine(Runner):
    """A folder with the checkout of a repository, and what runs a workflow's steps in it."""

    def run(self, script: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run a script as GitHub's runner does with ``shell: bash``."""
        path = f"{self.folder}/bin{os.pathsep}{os.environ['PATH']}"
        words = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script]
        return subprocess.run(
            words, cwd=self.folder, capture_output=True, text=True, check=False, timeout=600,
            env={**OUTSIDE, "PATH": path, **self.environment, **environment},
        )  # fmt: skip

    def breaks(self, broken: bool) -> None:
        """Let the suite find a fault, or find none."""
        (self.folder / "suite" / "test_it.py").write_text(WRONG)
        if broken:
            (self.folder / "suite" / "wrong").touch()


def machine_in(folder: Path) -> Machine:
    return Machine(folder, {"NARROWER": "--suite suite", "GITHUB_RUN_ID": "5"})


@pytest.fixture(scope="session")
def first_machine(tmp_path_factory):
    """A machine with what the document's first commands make, of a run that held."""
    tmp_path = tmp_path_factory.mktemp("machine")
    for name in ("bin", "conformance", "suite"):
        (tmp_path / name).mkdir()
    shim = tmp_path / "bin" / "autograd-conformance"
    command = warm.command(tmp_path / "bin" / "fast")
    shim.write_text(SHIM.replace("NARROW ", f"{shlex.join(NARROW)} ").replace("COMMAND", shlex.quote(command)))
    shim.chmod(0o755)
    found = machine_in(tmp_path)
    found.breaks(False)
    first = re.search(r"A first run makes all three:\n\n```console\n(.*?)```", TEXT, re.S)[1]
    done = found.run(first.replace("$ ", ""))
    assert done.returncode == 0, done.stderr
    assert {path.name for path in (tmp_path / "conformance").iterdir()} == {
        "torch.baseline", "corpus.txt", "durations.ndjson",
    }  # fmt: skip
    return found


@pytest.fixture(scope="session")
def ready_machine(first_machine, tmp_path_factory):
    """The same, on which the shards of the gate have run."""
    found = copied(first_machine, tmp_path_factory.mktemp("ready"))
    assert shards(found) == [SHARD] * 4
    return found


def copied(machine, folder):
    shutil.copytree(machine.folder, folder, dirs_exist_ok=True)
    return machine_in(folder)


@pytest.fixture
def machine(first_machine, tmp_path):
    return copied(first_machine, tmp_path)


@pytest.fixture
def ready(ready_machine, tmp_path):
    return copied(ready_machine, tmp_path)


def shards(machine, workflow=GATE, **github):
    """The exit statuses of the four shards."""
    return [machine.job(workflow, "shard", index=n, **github) for n in range(4)]


def test_the_gate_passes_and_says_so(ready, tmp_path):
    assert ready.job(GATE, "gate") == {"Merge": 0, "Summarize": 0, "Site": 0}
    assert not ndjson.flaw(ndjson.read(tmp_path / "artifacts" / "conformance" / "conformance.ndjson"))
    assert "### ✅ model " in (tmp_path / "summary.md").read_text()
    assert (tmp_path / "site" / "index.html").exists()
    assert {path.name for path in (tmp_path / "artifacts" / "conformance-2").iterdir()} == {
        f"conformance-2.{kind}" for kind in ("ndjson", "html")
    }


def test_the_gate_fails_for_what_broke_until_that_is_accepted(machine, tmp_path):
    machine.breaks(True)
    assert shards(machine) == [SHARD] * 4
    assert machine.job(GATE, "gate") == {"Merge": 1, "Summarize": 0, "Site": 0}
    assert "VJP-FD[Exp-cpu]" in (tmp_path / "artifacts" / "conformance" / "conformance.txt").read_text()
    assert "### ❌ model " in (tmp_path / "summary.md").read_text()
    accept = re.search(r"accept it in the same pull request.*?```console\n\$ (.*?)\n```", TEXT, re.S)[1]
    shutil.copy(tmp_path / "artifacts" / "conformance" / "conformance.ndjson", tmp_path)
    assert machine.run(accept).returncode == 0
    assert machine.job(GATE, "gate")["Merge"] == 0


@pytest.mark.parametrize("lost", ["report", "end", "job"])
def test_a_lost_shard_fails_the_gate(ready, tmp_path, lost):
    path = tmp_path / "artifacts" / "conformance-3" / "conformance-3.ndjson"
    lines = path.read_text().splitlines(keepends=True)
    path.unlink()
    if lost == "end":
        path.write_text("".join(lines[:-1]))
    if lost == "job":
        shutil.rmtree(path.parent)
    assert ready.job(GATE, "gate") == {"Merge": 2, "Summarize": 0, "Site": 1}
    assert (tmp_path / "summary.md").read_text().endswith("There is no report.\n")


def test_a_night_is_kept_and_then_run_by_the_gate(machine, tmp_path):
    corpus = tmp_path / "conformance" / "corpus.txt"
    assert shards(machine, NIGHTLY, run_number="17") == [SHARD] * 4
    before = corpus.read_text()
    assert machine.job(NIGHTLY, "keep") == {"Merge": 0, "Summarize": 0, "Keep": 0}
    assert corpus.read_text() == before
    machine.breaks(True)
    assert shards(machine, NIGHTLY, run_number="17") == [SHARD] * 4
    assert machine.job(NIGHTLY, "keep") == {"Merge": 1, "Summarize": 0, "Keep": 0}
    assert "VJP-FD[Exp-cpu]" in set(corpus.read_text().split()) - set(before.split())
    assert shards(machine) == [SHARD] * 4
    assert machine.job(GATE, "gate")["Merge"] == 1


def test_each_platform_has_a_baseline(machine):
    assert [machine.job(PLATFORMS, "run", index=n)["Run"] for n in range(3)] == [2] * 3
    for n, name in enumerate(("linux", "mac", "cuda")):
        accept = f"accept conformance/durations.ndjson -o conformance/{name}.baseline"
        assert machine.run(f"autograd-conformance {accept}").returncode == 0
        assert machine.job(PLATFORMS, "run", index=n) == {"Run": 0, "Summarize": 0}
    machine.breaks(True)
    assert machine.job(PLATFORMS, "run", index=2) == {"Run": 1, "Summarize": 0}
    assert "broken: VJP-FD[Exp-cpu] no longer holds" in machine.done["Run"].stdout


def test_gitlabs_scripts(machine, tmp_path):
    machine.breaks(True)
    run, gate = (
        "\n".join(row for row in step.script.splitlines() if not row.startswith(INSTALLS)) for step in gitlab(GITLAB)
    )
    for number in "1234":
        assert machine.run(run, CI_NODE_INDEX=number, CI_NODE_TOTAL="4").returncode == 0
    assert machine.run(gate).returncode == 1
    assert len(list(tmp_path.glob("junit-[1-4].xml"))) == 4
    assert (tmp_path / "conformance.md").exists()
    assert machine.run("autograd-conformance accept conformance.ndjson -o conformance/torch.baseline").returncode == 0
    assert machine.run(gate).returncode == 0


def pods() -> Iterator[tuple[str, dict[str, str]]]:
    """The script and the environment of each pod of the Indexed Job."""
    spec = yaml.safe_load(KUBERNETES)["spec"]
    (container,) = spec["template"]["spec"]["containers"]
    (script,) = container["args"]
    assert [each["name"] for each in container["env"]] == ["RUN"]
    # Outside of GitHub.
    known = {"GITHUB_RUN_ID": "", "RUN": "5f2a"}
    yield from ((script, {**known, "JOB_COMPLETION_INDEX": str(n)}) for n in range(spec["completions"]))


def tasks() -> Iterator[tuple[str, dict[str, str]]]:
    """The script and the environment of each task of the array."""
    first, last = map(int, re.search(r"--array=(\d+)-(\d+)", SLURM).groups())
    for n in range(first, last + 1):
        count = {"MIN": first, "MAX": last, "COUNT": last - first + 1, "STEP": 1, "ID": n}
        own = {f"SLURM_ARRAY_TASK_{name}": str(value) for name, value in count.items()}
        yield SLURM, {**own, "SLURM_ARRAY_JOB_ID": "77", "GITHUB_RUN_ID": ""}


# How a gate that merges the parts of a job is started.
AFTER = {pods: f"RUN=5f2a\n{KUBERNETES_GATE}", tasks: f"set -- 77\n{SLURM_GATE}"}


@pytest.mark.parametrize("jobs", [pods, tasks])
@pytest.mark.parametrize("broken", [False, True])
def test_the_parts_of_a_cluster_are_a_whole_run(machine, tmp_path, jobs, broken):
    machine.breaks(broken)
    gate = AFTER[jobs]
    done = [machine.run(script, **environment) for script, environment in jobs()]
    assert [each.returncode for each in done] == [0] * 4, done[0].stderr
    assert machine.run(gate).returncode == int(broken)
    lost = max(tmp_path.glob("*/shard-*.ndjson"), key=lambda path: path.stat().st_size)
    lost.write_text(lost.read_text().splitlines(keepends=True)[0])
    assert machine.run(gate).returncode == 2
    # The scheduler starts each part again.
    again = [machine.run(script, **environment) for script, environment in jobs()]
    assert [each.returncode for each in again] == [0] * 4, again[0].stderr
    assert sum("nothing was left to run" in each.stdout or "has no test id" in each.stdout for each in again) == 3
    assert machine.run(gate).returncode == int(broken)
    lost.unlink()
    assert machine.run(gate).returncode == 2


@pytest.mark.parametrize(
    ("jobs", "old", "other"), [(pods, "5f2a", {"RUN": "6b3c"}), (tasks, "conformance-77", {"SLURM_ARRAY_JOB_ID": "78"})]
)
def test_what_an_older_job_left_is_not_merged(machine, tmp_path, jobs, old, other):
    """Of the new job one part is lost. That of the older one lies on the same volume."""
    every = list(jobs())
    assert [machine.run(script, **environment).returncode for script, environment in every] == [0] * 4
    assert machine.run(AFTER[jobs]).returncode == 0
    machine.breaks(True)
    done = [machine.run(script, **{**environment, **other}) for script, environment in every[:3]]
    assert [each.returncode for each in done] == [0] * 3, done[0].stderr
    gate = AFTER[jobs].replace("5f2a", "6b3c").replace("set -- 77", "set -- 78")
    lost = machine.run(gate)
    assert (lost.returncode, "there is no report of shard 4/4" in lost.stderr) == (2, True), lost.stderr
    # Even if all parts are in the place of those that were lost.
    (new,) = {path.parent for path in tmp_path.glob("*/shard-*.ndjson")} - {tmp_path / old}
    shutil.rmtree(new)
    shutil.copytree(tmp_path / old, new)
    lost = machine.run(gate)
    assert (lost.returncode, "is not of the run" in lost.stderr) == (2, True), lost.stderr
