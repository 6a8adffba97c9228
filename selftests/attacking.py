"""An adapter that attacks its own run, and the runs of it."""

from __future__ import annotations

import subprocess

from autograd_conformance.selftests.conftest import COMMAND, OUTSIDE

# An implementation whose tanh is wrong if it says so, and what it does in addition. In the smoke stage it is right.
MINE = """
import atexit, os, signal, sys, threading
from types import SimpleNamespace

from autograd_conformance.implementations.model import ModelImplementation
from autograd_conformance.reference import model_namespace

EXAMINED = "autograd_conformance.harness.running.smoke" in sys.orig_argv


class Mine(ModelImplementation):
    name = "mine"
    calls = 0
    xp = SimpleNamespace(**vars(model_namespace.xp))
    if {wrong} and not EXAMINED:
        xp.tanh = lambda x: 1.01 * model_namespace.xp.tanh(x)

    def vjp(self, *args, **kwargs):
        Mine.calls += not EXAMINED
        {during}
        return super().vjp(*args, **kwargs)


{at_import}
"""


def mine(folder, *, wrong=False, during="pass", at_import=""):
    """An adapter of the model that does this while it runs, and when it is imported."""
    (folder / "mine.py").write_text(MINE.format(wrong=wrong, during=during, at_import=at_import))
    return "mine.py"


def checked(folder, *words, environment=OUTSIDE, **what):
    """A run of an attacking adapter."""
    narrow = ("--functions", "LLTM", "--properties", "VJP-REF,FWD-VALUE")
    return subprocess.run(
        [COMMAND, "run", mine(folder, **what), *narrow, *words], cwd=folder, env=environment, capture_output=True,
        text=True, timeout=300, check=False,
    )  # fmt: skip


def with_baseline(folder):
    """The folder, with the baseline base.txt of an adapter that is right."""
    done = checked(folder, "-n", "0")
    assert done.returncode == 0, done.stdout + done.stderr
    words = [COMMAND, "accept", "autograd-conformance.ndjson", "-o", "base.txt"]
    assert subprocess.run(words, cwd=folder, env=OUTSIDE, check=False, capture_output=True).returncode == 0
    return folder
