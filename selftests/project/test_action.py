"""The GitHub Action: its form, what it pins, and its steps with other inputs than those of the documentation."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess

import jsonschema
import pytest
import yaml

from autograd_conformance.harness.catalogue import PACKAGE
from autograd_conformance.selftests.project.actions import ACTION, OURS, Runner
from autograd_conformance.selftests.project.test_ci import (  # noqa: F401
    CHANGES,
    GATE,
    HOOKS,
    NIGHTLY,
    PLATFORMS,
    TEXT,
    copied,
    first_machine,
    machine,
    machine_in,
)

SCHEMA = json.loads((PACKAGE / "selftests" / "project" / "action.schema.json").read_text())
STEPS = ACTION["runs"]["steps"]
# The contexts that steps of a composite action have, by the runner's own description of such a file.
CONTEXTS = {"github", "inputs", "strategy", "matrix", "steps", "job", "runner", "env"}


def test_the_action_has_the_form_that_github_documents():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    jsonschema.validate(ACTION, SCHEMA)


@pytest.mark.parametrize(
    "fault",
    [
        {"name": ""},
        {"inputs": {"shard": {"default": "auto"}}},
        {"inputs": {"Shard": {"description": "x"}}},
        {"outputs": {"report": {"description": "x"}}},
        {"runs": {"using": "composite", "steps": [{"run": "true"}]}},
        {"runs": {"using": "composite", "steps": [{"uses": "a/b@c", "shell": "bash"}]}},
        {"runs": {"using": "composite", "steps": [{"run": "true", "shell": "bash", "timeout-minutes": 3}]}},
        {"jobs": {}},
    ],
)
def test_another_form_is_found(fault):
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**ACTION, **fault}, SCHEMA)


def test_inputs_are_used_and_reach_scripts_as_variables_only():
    used = set(re.findall(r"\binputs\.([a-z-]+)", json.dumps(STEPS)))
    assert used == set(ACTION["inputs"])
    for step in STEPS:
        assert "${{" not in step.get("run", "")
    expressions = re.findall(r"\$\{\{ (.*?) \}\}", json.dumps(ACTION))
    assert {name for text in expressions for name in re.findall(r"(?<![.\w])([a-z]+)\.[a-z]", text)} <= CONTEXTS


def test_inputs_are_documented():
    rows = re.findall(r"^\| (`.*?) \|", TEXT[TEXT.index("| input |") : TEXT.index("`.github/workflows")], re.M)
    assert sorted(re.findall(r"`([a-z-]+)`", " ".join(rows))) == sorted(ACTION["inputs"])


def test_actions_are_pinned_by_commit_and_name_their_version():
    texts = [(PACKAGE / "action.yml").read_text(), GATE, NIGHTLY, PLATFORMS, CHANGES]
    used = [line for text in texts for line in re.findall(r"uses: (.*)", text) if line != OURS]
    assert "runs-on: ubuntu-latest" not in TEXT
    assert len(used) >= 8
    for line in used:
        assert re.fullmatch(r"actions/[a-z-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", line), line
    # One commit for each action.
    assert len({line.split("@")[0] for line in used}) == len(set(used))


# One job, without shards.


def workflow(**given):
    return yaml.safe_dump({"jobs": {"one": {"steps": [{"uses": OURS, "id": "one", "with": given}]}}})


def test_one_job_is_held_against_the_baseline(machine, tmp_path):  # noqa: F811
    one = workflow(baseline="conformance/torch.baseline")
    assert machine.job(one, "one") == {"Run": 0, "Summarize": 0}
    assert "gate: holds" in machine.done["Run"].stdout
    machine.breaks(True)
    assert machine.job(one, "one") == {"Run": 1, "Summarize": 0}
    assert (tmp_path / "artifacts" / "conformance-0" / "conformance-0.ndjson").exists()


def test_one_job_without_a_baseline_has_the_verdict_of_its_run(machine):  # noqa: F811
    assert machine.job(workflow(), "one")["Run"] == 0
    machine.breaks(True)
    assert machine.job(workflow(), "one")["Run"] == 1


def test_arguments_are_words_and_nothing_of_them_is_run(machine, tmp_path):  # noqa: F811
    given = "-n 0 --seed 3 --run-id 'two words; $(touch hacked) `touch hacked`'"
    assert machine.job(workflow(arguments=given, artifact="mine"), "one")["Run"] == 0
    report = (tmp_path / "artifacts" / "mine-0" / "mine-0.ndjson").read_text().splitlines()
    header = json.loads(report[0])
    assert header["seed"] == 3
    assert header["run"]["id"] == "two words; $(touch hacked) `touch hacked`"
    assert not (tmp_path / "hacked").exists()


@pytest.mark.parametrize("given", [{"shard": "5/4"}, {"profile": "none"}, {"baseline": "none"}, {"arguments": "--no"}])
def test_what_cannot_run_fails(machine, given):  # noqa: F811
    assert machine.job(workflow(**given), "one") == {"Run": 2, "Summarize": 0}


@pytest.mark.parametrize("merge", [False, True])
def test_two_uses_in_one_job_do_not_mix_their_files(machine, tmp_path, merge):  # noqa: F811
    """The second one is of a run that broke: its report is not that of the first, nor merged with it."""
    if merge:
        for artifact in ("a", "b"):
            machine.breaks(artifact == "b")
            assert machine.job(workflow(shard="1/1", artifact=artifact), "one")["Run"] == 0
    given = [{"merge": f"{each}-0"} if merge else {"arguments": f"--seed {seed}"} for seed, each in enumerate("ab")]
    for artifacts in (("one", "two"), ("one", "one")):
        uses = [
            {"uses": OURS, "with": {**with_, "artifact": name}} for name, with_ in zip(artifacts, given, strict=True)
        ]
        uses[1]["if"] = "always()"
        shutil.rmtree(tmp_path / "artifacts" / "one", ignore_errors=True)
        done = machine.job(yaml.safe_dump({"jobs": {"one": {"steps": uses}}}), "one")
        name = "Merge" if merge else "Run"
        if artifacts == ("one", "one"):
            assert done[name] == 2
            assert "has the artifact one" in machine.done[name].stderr
            continue
        assert done[name] == int(merge)
        suffix = "" if merge else "-0"
        for artifact in artifacts:
            files = {path.name for path in (tmp_path / "artifacts" / f"{artifact}{suffix}").iterdir()}
            assert files == {f"{artifact}{suffix}.{kind}" for kind in ("ndjson", "html")}


def test_shards_that_fail_are_red_without_a_baseline_too(machine):  # noqa: F811
    for number in (1, 2):
        assert machine.job(workflow(shard=f"{number}/2", artifact=f"a{number}"), "one")["Run"] == 0
    assert machine.job(workflow(merge="a*"), "one")["Merge"] == 0
    machine.breaks(True)
    for number in (1, 2):
        assert machine.job(workflow(shard=f"{number}/2", artifact=f"a{number}"), "one")["Run"] == 0
    assert machine.job(workflow(merge="a*"), "one")["Merge"] == 1


def test_kept_ids_without_a_test_fail_and_the_comparison_is_shown_all_the_same(machine, tmp_path):  # noqa: F811
    # Only a run of the whole suite knows that a test is gone.
    machine.environment["NARROWER"] = ""
    corpus = tmp_path / "conformance" / "corpus.txt"
    corpus.write_text(corpus.read_text() + "VJP-NONE/gone[Exp-cpu]  seed=1 examples=5\n")
    for number in (1, 2):
        given = workflow(shard=f"{number}/2", artifact=f"a{number}", corpus="conformance/corpus.txt")
        assert machine.job(given, "one")["Run"] == 0
    assert machine.job(workflow(merge="a*"), "one")["Merge"] == 2
    accept = "accept artifacts/conformance/conformance.ndjson -o conformance/all.baseline"
    assert machine.run(f"autograd-conformance {accept}").returncode == 0
    assert machine.job(workflow(merge="a*", baseline="conformance/all.baseline"), "one")["Merge"] == 2
    assert "VJP-NONE/gone[Exp-cpu]" in machine.done["Merge"].stderr
    assert "gate: holds: 14 same" in machine.done["Merge"].stdout


# What a change touches.

DECLARATION = """
import torch
from autograd_conformance import Declaration

class NAME(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * FACTOR

declared = Declaration(NAME, "float[n]", once=True)
"""
FEW = "--properties VJP-FD --seed 1"


@pytest.fixture
def changed(tmp_path):
    """A checkout, in which a change touches a file of declarations with a fault, and not the other one with a fault."""
    pytest.importorskip("torch")
    (tmp_path / "conformance").mkdir()
    runner = Runner(tmp_path)

    def commit(**factors):
        for name, factor in factors.items():
            text = DECLARATION.replace("NAME", name.capitalize()).replace("FACTOR", str(factor))
            (tmp_path / "conformance" / f"{name} 1.py").write_text(text)
        git = ["git", "-c", "user.name=x", "-c", "user.email=x@example.org"]
        for words in (["init", "-q"], ["add", "conformance"], ["commit", "-q", "--allow-empty", "-m", "x"]):
            subprocess.run([*git, *words], cwd=tmp_path, check=True)
        done = subprocess.run(["git", "rev-parse", "HEAD"], cwd=tmp_path, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    return runner, commit


def checked(runner, before, **given):
    one = workflow(**{"check": "conformance/*.py", "profile": "quick", "arguments": FEW, **given})
    return runner.job(one, "one", event={"before": before}), runner.done["Check"]


def test_what_a_change_touches_is_checked_and_annotated(changed):
    runner, commit = changed
    before = commit(old=3, right=2)
    commit(new=3, right=2)
    statuses, done = checked(runner, before)
    assert statuses == {"Check": 1}
    (annotation,) = [row for row in done.stdout.splitlines() if row.startswith("::")]
    assert annotation.startswith("::error file=conformance/new 1.py,line=11,title=New%3A wrong%3A VJP-FD::")
    # The right twin, and a change that touches nothing that matches.
    before = commit(new=2)
    commit(right=2, new=2.0)
    assert checked(runner, before)[0] == {"Check": 0}
    statuses, done = checked(runner, before, check="other/*.py")
    assert (statuses, done.stdout) == ({"Check": 0}, "The change touches no file like other/*.py.\n")


def test_all_files_are_checked_where_no_commit_is_known(changed):
    runner, commit = changed
    commit(old=3, right=2)
    for before in ("", "0" * 40):
        statuses, done = checked(runner, before)
        assert statuses == {"Check": 1}
        assert "2 Functions: 1 without a fault, 1 wrong (Old)" in done.stdout
    # As the documentation has it.
    before = commit(old=2)
    commit(new=3)
    assert runner.job(CHANGES, "functions", event={"pull_request": {"base": {"sha": before}}}) == {"Check": 1}
    assert "New" in runner.done["Check"].stdout
    assert "Old" not in runner.done["Check"].stdout
    statuses, done = checked(runner, "", check="other/*.py")
    assert (statuses, done.stderr) == ({"Check": 2}, "No file is like other/*.py.\n")


# The hook for pre-commit.


def test_the_hook_checks_the_files_that_it_gets(changed, tmp_path):
    (hook,) = yaml.safe_load((PACKAGE / ".pre-commit-hooks.yaml").read_text())
    assert {"id", "name", "entry", "language"} <= hook.keys()
    assert (hook["language"], hook["require_serial"]) == ("system", True)
    assert [bool(re.search(hook["files"], name)) for name in (
        "declarations.py", "a/declarations_of_b.py", "a/ops.py", "declarations.txt", "declarations/ops.py",
    )] == [True, True, False, False, False]  # fmt: skip
    (documented,) = yaml.safe_load(HOOKS)["repos"][0]["hooks"]
    assert documented["id"] == hook["id"]
    _, commit = changed
    commit(old=3, right=2)
    for name, status in (("old", 1), ("right", 0)):
        words = [*shlex.split(hook["entry"]), *shlex.split(FEW), f"conformance/{name} 1.py"]
        assert subprocess.run(words, cwd=tmp_path, capture_output=True, check=False).returncode == status
