"""An adapter that attacks its own run, and the runs of it."""

from __future__ import annotations

from autograd_conformance.selftests.support.warm import OUTSIDE, started

# An implementation whose tanh is wrong if it says so, and what it does in addition. In the smoke stage it is right.
MINE = """
import atexit, os, signal, sys, threading
from types import SimpleNamespace

from autograd_conformance.implementations.model import ModelImplementation
from autograd_conformance.reference import model_namespace

EXAMINED = "autograd_conformance.harness.probing.smoke" in sys.orig_argv


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


def checked(folder, *words, environment=OUTSIDE, fresh=False, **what):
    """A run of an attacking adapter. If the attack is on the start of an interpreter, a ``fresh`` one."""
    narrow = ("--functions", "LLTM", "--properties", "VJP-REF,FWD-VALUE")
    return started("run", mine(folder, **what), *narrow, *words, folder=folder, environment=environment, fresh=fresh)


def with_baseline(folder, *words):
    """The folder, with the baseline base.txt of an adapter that is right."""
    done = checked(folder, "-n", "0", *words)
    assert done.returncode == 0, done.stdout + done.stderr
    accept(folder)
    return folder


def accept(folder, to="base.txt"):
    """Accept the report of the last run in a folder as a baseline."""
    words = ("accept", "autograd-conformance.ndjson", "-o", to)
    done = started(*words, folder=folder)
    assert done.returncode == 0, done.stderr
