"""Exceptions, plugins and arguments of pytest that try to change an outcome."""

from __future__ import annotations

import shutil

import pytest

from autograd_conformance.harness.reports import ndjson
from autograd_conformance.selftests.conftest import outside_with
from autograd_conformance.selftests.gate.attacking import checked, with_baseline
from autograd_conformance.selftests.support.warm import started


@pytest.fixture(scope="module")
def accepted(tmp_path_factory):
    """A folder with the baseline of an adapter that is right."""
    return with_baseline(tmp_path_factory.mktemp("accepted"))


# What steers pytest, Hypothesis or the process, as a Function or an adapter may raise it.
STEERING = {
    "skip": "pytest.skip('pass: x')",
    "xfail": "pytest.xfail('pass: x')",
    "fail": "pytest.fail('pass: x')",
    "exit": "pytest.exit('pass: x', returncode=0)",
    "SkipTest": "(_ for _ in ()).throw(unittest.SkipTest('pass: x'))",
    "assume": "hypothesis.assume(False)",
    "reject": "hypothesis.reject()",
    "UnsatisfiedAssumption": "(_ for _ in ()).throw(hypothesis.errors.UnsatisfiedAssumption())",
    "StopTest": "(_ for _ in ()).throw(hypothesis.errors.StopTest(0))",
    "Unsatisfiable": "(_ for _ in ()).throw(hypothesis.errors.Unsatisfiable())",
    "SystemExit": "sys.exit(0)",
    "GeneratorExit": "(_ for _ in ()).throw(GeneratorExit())",
    "KeyboardInterrupt": "(_ for _ in ()).throw(KeyboardInterrupt())",
    "CancelledError": "(_ for _ in ()).throw(asyncio.CancelledError())",
}


@pytest.mark.parametrize("attack", STEERING)
def test_what_an_adapter_raises_is_an_exception_like_any_other(tmp_path, attack):
    """It raises where it would be found out, and nowhere else."""
    during = f"if Mine.calls > 30 and Mine.calls % 3 == 0: {STEERING[attack]}"
    imports = "import asyncio, hypothesis.errors, pytest, unittest"
    done = checked(tmp_path, "-n", "0", during=during, at_import=imports, wrong=False)
    if attack == "KeyboardInterrupt" and done.returncode == 2:
        return
    assert done.returncode == 1, done.stdout + done.stderr
    found = [line for line in ndjson.read(tmp_path / "autograd-conformance.ndjson") if line.get("outcome")]
    assert {line["outcome"] for line in found} <= {"fail", "error", "pass"}, done.stdout
    assert any(attack in str(line.get("failure")) or "pass: x" in str(line.get("failure")) for line in found)


FUNCTION = """
class {name}(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        {forward}
        return x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        {backward}
        return 2.02 * x * g if x.dtype == torch.float32 else 2 * x * g


declared_{name} = Declaration({name}, "float[n]", dtypes=["float64", "float32"])
"""


# One of each kind: outcomes, rejections and exits. What forward raises takes the same way for all of a kind.
KINDS = ("skip", "reject", "exit")
RAISING = {
    "kinds": [(each, place) for each in KINDS for place in ("forward", "backward")],
    "others": [(each, "backward") for each in STEERING if each not in KINDS],
}


@pytest.mark.parametrize("which", RAISING)
def test_what_a_function_raises_is_an_exception_like_any_other(tmp_path, which):
    """It raises for the dtype in which it is wrong."""
    pytest.importorskip("torch")
    places = RAISING[which]
    imports = "import asyncio, sys, unittest\n\nimport hypothesis\nimport pytest\nimport torch\n"
    text = f"{imports}from autograd_conformance import Declaration\n"
    for attack, place in places:
        parts = {"forward": "pass", "backward": "pass", place: f"if x.dtype == torch.float32: {STEERING[attack]}"}
        text += FUNCTION.format(name=f"{attack}_{place}", **parts)
    (tmp_path / "mine.py").write_text(text)
    words = ["mine.py", "--properties", "VJP-REF", "--profile", "quick", "--seed", "1", "--report", "r.ndjson"]
    done = started("check", *words, folder=tmp_path, torch=True, seconds=600)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    found = [line for line in ndjson.read(tmp_path / "r.ndjson") if line.get("property") == "VJP-REF"]
    raised = {line["function"] for line in found if line.get("failure", {}).get("kind") == "raised"}
    assert raised == {f"{attack}_{place}" for attack, place in places}


@pytest.mark.parametrize("mark", ["skip(reason='pass: x')", "xfail(reason='pass: x')", "xfail(run=False)"])
def test_a_mark_of_a_conftest_is_no_outcome(tmp_path, mark):
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "conftest.py").write_text(
        f"import pytest\n\n\ndef pytest_collection_modifyitems(items):\n"
        f"    for item in items:\n        item.add_marker(pytest.mark.{mark})\n"
    )
    (tmp_path / "own" / "test_it.py").write_text(
        "from autograd_conformance.harness.testing.marks import holds\n\n\n@holds('VJP-REF')\n"
        "def test_it(subject, data):\n    example = subject.example(data.draw(subject.calls()))\n"
        "    subject.assert_that(False, example.call, 'it', got=1, expected=2)\n"
    )
    done = checked(tmp_path, "-n", "0", "--suite", "./own")
    assert done.returncode == 1, done.stdout + done.stderr


# A plugin that leaves out the tests that would fail, and lets the others pass.
EVIL = """
import pytest


def pytest_collection_modifyitems(items):
    items[:] = [item for item in items if "fwd" in item.name]


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(item, call):
    call.excinfo = None
    return (yield)
"""

# Files in the working directory, and what the environment has in addition.
FROM_OUTSIDE = {
    "PYTEST_PLUGINS": ({"evil.py": EVIL}, {"PYTEST_PLUGINS": "evil"}, ()),
    "PYTEST_ADDOPTS": ({"evil.py": EVIL}, {"PYTEST_ADDOPTS": "-p evil -k fwd"}, ()),
    "an entry point": (
        {
            "evil.py": EVIL,
            "evil-1.dist-info/METADATA": "Metadata-Version: 2.1\nName: evil\nVersion: 1\n",
            "evil-1.dist-info/entry_points.txt": "[pytest11]\nevil = evil\n",
        },
        {},
        (),
    ),
    "conftest.py": ({"conftest.py": EVIL}, {}, ()),
    "pytest.ini": ({"evil.py": EVIL, "pytest.ini": "[pytest]\naddopts = -p evil -k fwd\n"}, {}, ()),
    "pyproject.toml": ({"pyproject.toml": "[tool.pytest.ini_options]\npython_functions = 'test_fwd*'\n"}, {}, ()),
    "tox.ini": ({"tox.ini": "[pytest]\naddopts = --collect-only\n"}, {}, ()),
    "a folder's conftest": (
        {"other/conftest.py": EVIL, "other/test_no.py": "def test_no():\n    pass\n"}, {}, ("--", "other"),
    ),
    "-p": ({"evil.py": EVIL}, {}, ("--", "-p", "evil")),
    "-pevil": ({"evil.py": EVIL}, {}, ("--", "-pevil")),
    "-xp": ({"evil.py": EVIL}, {}, ("--", "-xp", "evil")),
    "-c": ({"evil.py": EVIL, "x.ini": "[pytest]\naddopts = -p evil\n"}, {}, ("--", "-c", "x.ini")),
    "-o": ({}, {}, ("--", "-o", "python_functions=test_fwd*")),
    "-qo": ({}, {}, ("--", "-qopython_functions=test_fwd*")),
}  # fmt: skip

NARROWING = (
    ("-k", "fwd"), ("-kfwd",), ("-m", "not slow"), ("--deselect", "x"), ("--setup-only",), ("--setup-plan",), ("--co",),
    ("--collect-only",), ("--override-ini=python_functions=test_fwd*",), ("--lf",), ("--stepwise",), ("--maxfail=1",),
    ("-x",), ("--ignore-glob=*vjp*",), ("--runxfail",), ("--pytest-arguments=",), ("--hypothesis-profile=ci",),
    ("--properties=FWD-VALUE",), ("--functions=Exp",), ("--suite-of-run=/",), ("--implementation=model",),
    ("--report=other.ndjson",), ("--shard=1/2",), ("--rootdir=.",), ("--noconftest",),
)  # fmt: skip


@pytest.mark.parametrize("workers", ["0", "1"])
@pytest.mark.parametrize("attack", FROM_OUTSIDE)
def test_nothing_from_outside_decides(accepted, tmp_path, attack, workers):
    files, more, words = FROM_OUTSIDE[attack]
    shutil.copy(accepted / "base.txt", tmp_path)
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    environment = outside_with(tmp_path) | more
    gated = checked(tmp_path, "-n", workers, "--baseline", "base.txt", *words, environment=environment, wrong=True)
    assert gated.returncode == (2 if words else 1), gated.stdout + gated.stderr
    assert words or "VJP-REF[LLTM-cpu]" in gated.stdout


@pytest.mark.parametrize("words", NARROWING, ids=" ".join)
def test_what_pytest_is_given_leaves_nothing_out(accepted, words):
    gated = checked(accepted, "-n", "0", "--baseline", "base.txt", "--", *words, wrong=True)
    assert gated.returncode in (1, 2), gated.stdout


def test_what_pytest_is_given_is_a_parameter_of_the_run(accepted):
    gated = checked(accepted, "-n", "0", "--baseline", "base.txt", "--", "-k", "fwd")
    assert gated.returncode == 2
    assert "its pytest is all, and this run's is -k fwd" in gated.stderr
    shown = checked(accepted, "-n", "0", "--baseline", "base.txt", "--", "-v", "--tb=short")
    assert shown.returncode == 0, shown.stderr
