"""Verdicts of whole checks: with results of earlier calls, with nothing decided, with faults that go together."""

from __future__ import annotations

import re

import pytest

pytest.importorskip("torch")


from autograd_conformance import implementations
from autograd_conformance.harness.check.discovery.discovery import discover
from autograd_conformance.harness.check.report import script_runner
from autograd_conformance.harness.check.report.grouping import Finds
from autograd_conformance.harness.check.report.printing import rows
from autograd_conformance.harness.outcomes import FAILS, HOLDS, UNDECIDED, combined
from autograd_conformance.selftests.checking import lines_of
from autograd_conformance.selftests.specimens.one_fault import writing
from autograd_conformance.selftests.warm import started
from autograd_conformance.suites.declared import Checked

CACHED = """
import torch
from autograd_conformance import Declaration


class Cached(torch.autograd.Function):
    factors = {}

    @staticmethod
    def kept(x, base):
        key = x.shape, x.dtype  # the base is missing
        if key not in Cached.factors:
            Cached.factors[key] = base ** -(torch.arange(x.numel(), dtype=x.dtype) % 2 + 1)
        return Cached.factors[key]

    @staticmethod
    def forward(ctx, x, base):
        ctx.base = base
        return x * Cached.kept(x, base)

    @staticmethod
    def backward(ctx, g):
        return g * Cached.kept(g, ctx.base), None


cached = Declaration(Cached, "float[n]", "2.0 | 3.0")
"""


def test_a_fault_that_a_new_process_does_not_show_has_no_script_and_a_cause(tmp_path):
    (tmp_path / "mine.py").write_text(CACHED)
    asked = ("--properties", "FWD-*,VJP-*")
    words = ("check", "mine.py", *asked, "--profile", "quick", "--seed", "1")
    done = started(*words, folder=tmp_path, torch=True)
    text = " ".join(done.stdout.split())
    assert done.returncode == 1, done.stdout + done.stderr
    assert "no script: a script that makes this call in a process of its own shows no fault" in text
    assert "keeps something of earlier calls" in text
    assert "right with" not in text
    assert not list(tmp_path.glob("*/*/Cached-VJP-REF.py"))


def test_scripts_that_show_their_fault_are_kept(tmp_path):
    texts = {
        "shows": "import sys\nsys.exit(True)\n",
        "raises": "raise ValueError\n",
        "says": "import sys\nsys.exit('wrong')\n",
        "ends": "import os\nos._exit(3)\n",
        "holds": "import sys\nsys.exit(False)\n",
        "falls through": "x = 1\n",
    }
    paths = {tmp_path / f"{name}.py": text for name, text in texts.items()}
    assert set(script_runner.written(paths).values()) == {""}
    assert {path.stem for path in script_runner.right(list(paths))} == {"holds", "falls through"}
    assert script_runner.right([]) == set()


def test_a_fault_counts_more_than_what_is_undecided():
    assert combined() == combined(HOLDS) == HOLDS
    assert combined(HOLDS, UNDECIDED) == UNDECIDED
    assert combined(UNDECIDED, FAILS) == combined(FAILS, UNDECIDED, HOLDS) == FAILS


COUNTING = """
import torch
from autograd_conformance import Declaration


class Counting(torch.autograd.Function):
    calls = 0

    @staticmethod
    def forward(ctx, x):
        Counting.calls += 1
        return x + Counting.calls

    @staticmethod
    def backward(ctx, g):
        return g


counting = Declaration(Counting, "float[n]", surrogate=True, conditioning=2, sizes={"n": (2, 3)})
"""


def test_a_check_that_decides_nothing_is_no_success(tmp_path):
    (tmp_path / "mine.py").write_text(COUNTING)
    words = ["check", "mine.py", "--properties", "MEM-WRITTEN", "--profile", "quick"]
    done = started(*words, folder=tmp_path, torch=True)
    assert "float[n]; declared: surrogate, conditioning 2, sizes" in done.stdout
    assert "its gradients are not compared with slopes: surrogate is declared without soft=" in done.stdout
    assert "0 checks hold, 0 do not, 1 undecided" in done.stdout
    assert done.returncode == UNDECIDED


def test_the_verdict_says_what_was_said_when_faults_were_found(tmp_path):
    declaration, finds = writing(3), Finds()
    lines = list(lines_of(Checked(declaration, profile="quick", seed=1), "VJP-FD", "VJP-REF", "VJP-PURE"))
    found = [row for line in lines for row in finds.rows(line)]
    assert found == [
        "found: Writing: WRONG: VJP-FD",
        "found: Writing: RAISES: VJP-REF",
        "found: Writing: MUTATES: VJP-PURE",
    ]
    facts = discover(declaration, implementations.load("torch"), errors=False)
    text = "\n".join(rows("Writing", facts, lines, tmp_path))
    assert text.count("WRONG: VJP-FD") == text.count("MUTATES: VJP-PURE") == 1
    assert re.search(r"same fault \(raises\): .*\bVJP-REF\b", text)
