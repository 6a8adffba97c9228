"""Adapters that are asked less, suites that were changed, and shards of other runs: the gate lets none of them pass."""

from __future__ import annotations

import shutil

import pytest

from autograd_conformance.harness.catalogue import PACKAGE
from autograd_conformance.selftests.gate.attacking import accept, checked, with_baseline
from autograd_conformance.selftests.support.warm import OUTSIDE, started

ASKED_LESS = {
    "another dtype is not claimed": "Mine.dtypes = tuple(d for d in Mine.dtypes if d not in ('float32', 'float16'))",
    "views are not claimed": "Mine.capabilities = Mine.capabilities - {'views'}",
    "no tensor without elements": "Mine.empty = False",
    "few shapes": "Mine.shapes_per_rank = 1",
    "a share of the examples": "Mine.share_of_examples = 0.2",
    "claims that change": "Mine.dtypes = property(lambda self: ('float64',))",
}
REFUSING = "if any('float16' in str(t) for t in args) or Mine.calls % 3: raise NotImplementedError('not here')"


@pytest.fixture(scope="module")
def accepted(tmp_path_factory):
    """A folder with the baseline of an adapter that is right."""
    return with_baseline(tmp_path_factory.mktemp("accepted"))


def test_a_right_adapter_passes_the_gate(accepted):
    gated = checked(accepted, "-n", "0", "--baseline", "base.txt")
    assert gated.returncode == 0, gated.stdout + gated.stderr


@pytest.mark.parametrize("attack", ASKED_LESS)
def test_who_is_asked_less_does_not_pass(accepted, attack):
    """The wrong tanh is where nobody looks any more."""
    gated = checked(accepted, "-n", "0", "--baseline", "base.txt", at_import=ASKED_LESS[attack])
    assert gated.returncode in (1, 2), gated.stdout
    assert "asked less: " in gated.stdout or "its examples is 25, and this run's is 5" in gated.stderr


def test_who_refuses_most_calls_does_not_pass(accepted):
    gated = checked(accepted, "-n", "0", "--baseline", "base.txt", during=REFUSING)
    assert gated.returncode in (1, 2), gated.stdout


@pytest.mark.parametrize(
    "words",
    [("--dtype", "float64"), ("--profile", "quick"), ("--seed", "5"), ("--device", "cpu"), ("--", "-k", "test")],
)
def test_another_run_is_not_compared(accepted, words):
    gated = checked(accepted, "-n", "0", "--baseline", "base.txt", *words)
    assert gated.returncode == 2
    assert "cannot be compared with this run" in gated.stderr


def copied(folder, weaken):
    """A copy of the package in which the text of a file is changed, and the environment that imports it."""
    copy = folder / "elsewhere" / "autograd_conformance"
    if not copy.exists():
        for room in ("harness", "implementations", "reference", "strategies", "suites"):
            shutil.copytree(PACKAGE / room, copy / room, ignore=shutil.ignore_patterns("__pycache__"))
        for file in PACKAGE.glob("*.py"):
            shutil.copy(file, copy)
    for name, change in weaken.items():
        path = copy / name
        text = path.read_text()
        assert change(text) != text
        path.write_text(change(text))
    return {**OUTSIDE, "PYTHONPATH": str(copy.parent)}


WEAKENED = {
    "suites": ("suites/functions/test_vjp_values.py", lambda text: text.replace("assert_close", "close_enough")),
    "reference": ("reference/rounding.py", lambda text: text + "\n_SLACK = 1e9\n"),
    "harness": ("harness/testing/compare.py", lambda text: text + "\n# lenient\n"),
    "deviations": ("implementations/deviations/torch.py", lambda text: text + "\n# one more\n"),
}


@pytest.mark.parametrize("room", WEAKENED)
def test_a_suite_that_was_weakened_is_refused(accepted, tmp_path, room):
    name, change = WEAKENED[room]
    environment = copied(tmp_path, {name: change})
    shutil.copy(accepted / "base.txt", tmp_path)
    gated = checked(tmp_path, "-n", "0", "--baseline", "base.txt", environment=environment, fresh=True)
    assert gated.returncode == 2, gated.stdout
    assert f"base.txt was made with another suite: its {room} differ, so a test may be weaker" in gated.stderr
    assert "--other-suite" in gated.stderr


def test_a_copy_that_is_the_same_is_the_same_suite(accepted, tmp_path):
    environment = copied(tmp_path, {})
    for file in (tmp_path / "elsewhere").rglob("*.py"):
        file.write_bytes(file.read_bytes().replace(b"\n", b"\r\n"))
    shutil.copy(accepted / "base.txt", tmp_path)
    gated = checked(tmp_path, "-n", "0", "--baseline", "base.txt", environment=environment, fresh=True)
    assert gated.returncode == 0, gated.stdout + gated.stderr


def test_another_suite_is_accepted_on_purpose_alone(accepted, tmp_path):
    name, change = WEAKENED["harness"]
    environment = copied(tmp_path, {name: change})
    shutil.copy(accepted / "base.txt", tmp_path)
    gated = checked(tmp_path, "-n", "0", "--baseline", "base.txt", "--other-suite", environment=environment, fresh=True)
    assert gated.returncode == 0, gated.stdout + gated.stderr
    assert "warning: base.txt was made with another suite: its harness differ" in gated.stderr
    wrong = checked(
        tmp_path, "-n", "0", "--baseline", "base.txt", "--other-suite", environment=environment, wrong=True, fresh=True
    )
    assert wrong.returncode == 1


def test_a_folder_with_the_name_of_a_suite_is_not_taken_for_it(accepted):
    (accepted / "functions").mkdir(exist_ok=True)
    (accepted / "functions" / "test_nothing.py").write_text("def test_nothing():\n    pass\n")
    theirs = checked(accepted, "-n", "0", "--suite", "functions")
    assert theirs.returncode == 0
    assert "mine on cpu: all 2 rows pass" in theirs.stdout
    accept(accepted, "functions.txt")
    mine = checked(accepted, "-n", "0", "--suite", "./functions", "--baseline", "functions.txt")
    assert mine.returncode == 2
    assert "its tests is functions, and this run's is ./functions" in mine.stderr


def test_another_adapter_is_said(accepted):
    gated = checked(accepted, "-n", "0", "--baseline", "base.txt", at_import="# another")
    assert gated.returncode == 0
    assert "warning: the adapter is not the one that base.txt was made with" in gated.stderr


def test_shards_of_two_builds_are_not_merged(tmp_path):
    """The shard in which the regression is comes from a build that does not have it."""
    location = "Mine.environment = lambda self: Environment('1', os.path.join('built', '__init__.py'))"
    (tmp_path / "built").mkdir()
    for n in (1, 2):
        (tmp_path / "built" / "__init__.py").write_text(f"# build {n}")
        done = checked(
            tmp_path, "-n", "0", "--shard", f"{n}/2", "--report", f"{n}.ndjson", "--run-id", "x",
            at_import=f"from autograd_conformance.implementations.protocol import Environment\n{location}",
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
    merged = started("merge", "1.ndjson", "2.ndjson", "-o", "all.ndjson", folder=tmp_path)
    assert merged.returncode == 2
    assert "1.ndjson and 2.ndjson are not of the same run: build is " in merged.stderr


@pytest.mark.parametrize(("ids", "status"), [(("1", "1"), 0), (("1", "2"), 2), (("1", ""), 2)])
def test_shards_of_two_runs_are_not_merged(tmp_path, ids, status):
    for n, id in enumerate(ids, 1):
        environment = OUTSIDE | {"GITHUB_RUN_ID": id}
        done = checked(tmp_path, "-n", "0", "--shard", f"{n}/2", "--report", f"{n}.ndjson", environment=environment)
        assert done.returncode == 0, done.stdout + done.stderr
    merged = started("merge", "1.ndjson", "2.ndjson", "-o", "all.ndjson", folder=tmp_path)
    assert merged.returncode == status
    assert status == 0 or "not of the same run: run id is github 1 in the first and " in merged.stderr
