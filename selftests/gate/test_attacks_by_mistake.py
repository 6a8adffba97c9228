"""What a fork, its installation or its machine does to a run without meaning to: none of it is a success."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from autograd_conformance.harness.commands import run as run_command
from autograd_conformance.selftests.conftest import OUTSIDE, outside_with
from autograd_conformance.selftests.gate.attacking import checked, mine, with_baseline
from autograd_conformance.selftests.support.warm import started

PROGRAM = "from autograd_conformance.harness.program import main; main()"
NARROW = ("--functions", "LLTM", "--properties", "VJP-REF,FWD-VALUE", "-n", "0")


@pytest.fixture(scope="module")
def accepted(tmp_path_factory):
    """A folder with the baseline of an adapter that is right."""
    return with_baseline(tmp_path_factory.mktemp("accepted"))


# What a wrong adapter does in addition when it is imported, and the exit statuses that are right.
AT_IMPORT = {
    "closes descriptors that are not its own": ("os.closerange(3, 256)", (1, 2)),
    "ends its parent": ("os.kill(os.getppid(), signal.SIGTERM)", (2,)),
    "is skipped": ("import pytest; pytest.skip('pass', allow_module_level=True)", (2,)),
    "stops": ("raise GeneratorExit", (2,)),
    "loads few examples": (
        "import hypothesis; hypothesis.settings.register_profile('x', max_examples=1);"
        "hypothesis.settings.load_profile('x')",
        (1,),
    ),
    "warns no more": ("import warnings, logging; warnings.simplefilter('ignore'); logging.disable()", (1,)),
    "has no devices": ("Mine.devices = lambda self: ()", (1, 2)),
    "has another device": ("Mine.devices = lambda self: ('other',)", (1, 2)),
    "lists what it breaks": (
        "from autograd_conformance.implementations.deviations import Cause, Component, Deviation, Grade\n"
        "cause = Cause(grade=Grade.DIFFERENCE, reason='so', link='https://x.org', seen=('0.1.0',))\n"
        "Mine.deviations = (Deviation(('VJP-REF', 'FWD-VALUE'), (Component(),), cause, ('LLTM',)),)",
        (1,),
    ),
    "stops the clocks": ("import time; time.monotonic = time.process_time = time.perf_counter = lambda: 0.0", (1, 2)),
    "leaves recursion": ("sys.setrecursionlimit(120)", (1, 2)),
    "changes NumPy's errors": ("import numpy; numpy.seterr(all='raise')", (1, 2)),
}


@pytest.mark.parametrize("attack", AT_IMPORT)
def test_what_a_fork_does_when_it_is_imported_hides_nothing(accepted, attack):
    text, statuses = AT_IMPORT[attack]
    fresh = "getppid" in text
    done = checked(accepted, "-n", "0", "--baseline", "base.txt", wrong=True, at_import=text, fresh=fresh)
    assert done.returncode in statuses, done.stdout + done.stderr


DURING = {
    "writes to every descriptor, and ends": (
        "if Mine.calls > 20: [os.write(n, b'0') for n in range(3, 64) if os.path.exists(f'/proc/self/fd/{n}')"
        " and not os.path.isfile(f'/proc/self/fd/{n}')]; os._exit(0)"
    ),
}


@pytest.mark.parametrize("attack", DURING)
def test_what_a_fork_does_in_a_test_hides_nothing(accepted, attack):
    done = checked(accepted, "-n", "0", "--baseline", "base.txt", wrong=True, during=DURING[attack])
    assert done.returncode in (1, 2), done.stdout + done.stderr


# What an installation brings for every process that Python starts.
STARTING = "import atexit, os; atexit.register(os._exit, {status})"


@pytest.mark.parametrize(("wrong", "status"), [(True, 0), (False, 1)])
def test_what_an_installation_runs_in_every_process_decides_nothing(tmp_path, wrong, status):
    """As by a .pth file: also in the process that gives the verdict."""
    mine(tmp_path, wrong=wrong)
    (tmp_path / "sitecustomize.py").write_text(STARTING.format(status=status))
    words = [sys.executable, "-c", PROGRAM, "run", "mine.py", *NARROW]
    done = subprocess.run(
        words, cwd=tmp_path, env=outside_with(tmp_path), capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == int(wrong), done.stdout + done.stderr
    assert "report: autograd-conformance.ndjson" in done.stdout


ENVIRONMENTS = (
    {"PYTHONOPTIMIZE": "2"},
    {"CI": "true", "GITHUB_ACTIONS": "true"},
    {"PYTHONWARNINGS": "ignore"},
    {"NO_COLOR": "1", "TERM": "dumb", "COLUMNS": "1", "PYTHONIOENCODING": "ascii"},
    {"LC_ALL": "C", "PYTHONUTF8": "0"},
    {"PYTHONHASHSEED": "0", "TZ": "Pacific/Kiritimati"},
)


@pytest.fixture(scope="module")
def accepted_with_another(tmp_path_factory):
    """As `accepted`, with a Function in which the adapter is always right."""
    return with_baseline(tmp_path_factory.mktemp("accepted"), *WITH_ANOTHER)


WITH_ANOTHER = ("--functions", "LLTM,Exp")


@pytest.mark.parametrize("more", ENVIRONMENTS, ids=" ".join)
def test_no_environment_hides_what_is_wrong_or_what_is_right(accepted_with_another, more):
    """Without assertions too."""
    words = ("-n", "0", "--baseline", "base.txt", *WITH_ANOTHER)
    done = checked(accepted_with_another, *words, wrong=True, environment=OUTSIDE | more, fresh=True)
    assert done.returncode == 1, done.stdout + done.stderr
    assert re.search(r"gate: fails: 2 broken, \d+ same", done.stdout), done.stdout


@pytest.mark.parametrize("workers", ["0", "1"])
def test_modules_of_the_working_folder_are_not_imported(accepted, tmp_path, workers):
    (tmp_path / "base.txt").write_bytes((accepted / "base.txt").read_bytes())
    for name in ("numpy", "hypothesis", "pytest", "xdist", "select", "autograd_conformance"):
        (tmp_path / f"{name}.py").write_text("import os\n\nos.write(2, __name__.encode())\nos._exit(0)\n")
    done = checked(tmp_path, "-n", workers, "--baseline", "base.txt", wrong=True, fresh=True)
    # Before 3.11 a worker begins with the modules of its folder, and then does not start.
    assert done.returncode in ((1,) if sys.version_info >= (3, 11) else (1, 2)), done.stdout + done.stderr


def test_a_report_of_another_run_is_not_judged(accepted, said, monkeypatch):
    """It was written in the moment between the end of the tests and the verdict, in the same folder."""
    monkeypatch.chdir(accepted)
    assert checked(accepted, "-n", "0").returncode == 0
    of_other = (accepted / "autograd-conformance.ndjson").read_bytes()

    def overwritten(*_):
        (accepted / "autograd-conformance.ndjson").write_bytes(of_other)
        return 1

    monkeypatch.setattr(run_command, "supervised", overwritten)
    status, out = said("run", "mine.py", *NARROW, "--baseline", "base.txt")
    assert (status, "is that of another run" in out) == (2, True), out


ENVIRONMENT = "from autograd_conformance.implementations.protocol import Environment\nMine.environment = {it}"
BUILT = "lambda self: Environment('1', os.path.join('built', '__init__.py'))"


def merged(folder, *names):
    return started("merge", *names, "-o", "all.ndjson", folder=folder)


def test_shards_with_another_native_library_are_not_merged(tmp_path):
    """It is as large as the one of the other shard."""
    (tmp_path / "built").mkdir()
    (tmp_path / "built" / "__init__.py").touch()
    for n in (1, 2):
        (tmp_path / "built" / "_C.so").write_bytes(bytes([n]) * 100)
        words = ("--shard", f"{n}/2", "--report", f"{n}.ndjson", "--run-id", "x")
        assert checked(tmp_path, "-n", "0", *words, at_import=ENVIRONMENT.format(it=BUILT)).returncode == 0
    done = merged(tmp_path, "1.ndjson", "2.ndjson")
    assert (done.returncode, "not of the same run: build is " in done.stderr) == (2, True), done.stderr


def test_parts_with_other_counterexamples_are_not_one_run(tmp_path):
    """In a file of the same name."""
    for n in (1, 2):
        (tmp_path / "corpus.txt").write_text(f"VJP-REF[LLTM-cpu]  seed={n} examples=3\n")
        words = ("--shard", f"{n}/2", "--report", f"{n}.ndjson", "--run-id", "x", "--corpus", "corpus.txt")
        assert checked(tmp_path, "-n", "0", *words).returncode == 0
    done = merged(tmp_path, "1.ndjson", "2.ndjson")
    assert (done.returncode, "not of the same run: counterexamples is " in done.stderr) == (2, True), done.stderr
    before = (tmp_path / "1.ndjson").read_bytes()
    words = ("--shard", "1/2", "--run-id", "x", "--corpus", "corpus.txt", "--resume", "1.ndjson", "--resume-finished")
    done = checked(tmp_path, "-n", "0", *words)
    assert (done.returncode, "cannot be resumed: its counterexamples is" in done.stderr + done.stdout) == (2, True)
    assert (tmp_path / "1.ndjson").read_bytes() == before


@pytest.mark.parametrize(
    ("kept", "words", "status"),
    [
        # No test has this variant any more.
        ("VJP-REF/gone[LLTM-cpu]", (), 2),
        ("VJP-REF/gone[LLTM-cpu]", ("--suite", "functions/test_vjp_values.py"), 0),
        ("VJP-REF[LLTM-cuda]", (), 0),
        ("VJP-FD[LLTM-cpu]", (), 0),
    ],
)
def test_a_corpus_whose_test_is_gone_is_no_success(tmp_path, kept, words, status):
    """Unless this run, this machine or this choice has none of its kind."""
    (tmp_path / "corpus.txt").write_text(f"{kept}  seed=1 examples=3\n")
    done = checked(tmp_path, "-n", "0", "--corpus", "corpus.txt", *words)
    assert done.returncode == status, done.stdout + done.stderr
    assert f"1 of the kept counterexamples have no test in this run: {kept}" in done.stdout
