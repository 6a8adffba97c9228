"""A command that is a fork of the server does what one does that an interpreter starts."""

from __future__ import annotations

import re
import signal
import subprocess
import sys

import pytest

from autograd_conformance.harness.reports import ndjson
from autograd_conformance.selftests.conftest import OUTSIDE
from autograd_conformance.selftests.support import warm, warm_server


def interpreted(code, folder, *arguments, seconds=60, **environment):
    """What a fork that runs this code prints, and how it ends."""
    words = [sys.executable, "-u", "-c", code, *arguments]
    return warm_server.run(warm.place(), words, folder=folder, environment=OUTSIDE | environment, seconds=seconds)


@pytest.mark.parametrize("workers", ["1", "0"])
def test_it_prints_and_reports_the_same(tmp_path, workers):
    words = ("run", "model", "--functions", "Exp", "--properties", "VJP-REF", "-n", workers)
    found = []
    for fresh in (False, True):
        done = warm.started(*words, folder=tmp_path, fresh=fresh)
        results = ndjson.comparable(ndjson.read(tmp_path / ndjson.DEFAULT_PATH)[1:-1])
        found.append((done.returncode, re.sub(r"^took .*", "", done.stdout, flags=re.M), done.stderr, results))
    assert found[0] == found[1]
    assert found[0][0] == 0


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("pass", 0),
        ("raise SystemExit(3)", 3),
        ("raise KeyError", 1),
        ("import os; os._exit(4)", 4),
        ("import os; os.kill(os.getpid(), 9)", -signal.SIGKILL),
        ("import atexit, os; atexit.register(os._exit, 5)", 5),
    ],
)
def test_it_ends_in_the_same_way(tmp_path, code, status):
    assert interpreted(code, tmp_path).returncode == status


def test_it_has_its_own_folder_environment_and_modules(tmp_path):
    (tmp_path / "own_module.py").write_text("NAME = 'own'\n")
    said = "os.getcwd(), os.environ['MINE'], own_module.NAME, sys.argv"
    code = f"import os, own_module, sys; print({said}, file=sys.stderr)"
    done = interpreted(code, tmp_path, "y", MINE="x", PYTHONPATH=str(tmp_path))
    assert (done.stdout, done.stderr) == ("", f"{tmp_path} x own ['-c', 'y']\n")
    assert interpreted("import own_module", tmp_path / "..").returncode == 1


def test_one_that_takes_too_long_is_ended(tmp_path):
    code = f"import os, time; open({str(tmp_path / 'number')!r}, 'w').write(str(os.getpid())); time.sleep(600)"
    with pytest.raises(subprocess.TimeoutExpired):
        interpreted(code, tmp_path, seconds=3)


def test_a_program_stands_for_the_command(tmp_path):
    words = [warm.command(tmp_path / "it"), "run", "nope"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert "unknown implementation 'nope'" in done.stderr
