"""Verdicts of lines and of whole checks, and which lines are one fault."""

from __future__ import annotations

import re

import numpy as np
import pytest

pytest.importorskip("torch")

from autograd_conformance import implementations
from autograd_conformance.harness.check.discovery.discovery import discover
from autograd_conformance.harness.check.explain import hints
from autograd_conformance.harness.check.report import grouping, script_runner
from autograd_conformance.harness.check.report.conclusion import concluded
from autograd_conformance.harness.check.report.grouping import Finds
from autograd_conformance.harness.check.report.printing import rows
from autograd_conformance.harness.check.report.verdicts import TRIED, Verdict, judged, verdict
from autograd_conformance.harness.outcomes import FAILS, HOLDS, UNDECIDED, combined
from autograd_conformance.harness.reports import ndjson
from autograd_conformance.selftests.check.checking import lines_of
from autograd_conformance.selftests.check.specimens.one_fault import writing
from autograd_conformance.selftests.support.warm import started
from autograd_conformance.strategies.calls import Call, Tensor
from autograd_conformance.suites.declared import Checked


def _line(test, outcome="fail", **more):
    """The line of a test; ``more`` is of its failure, if it has one."""
    property_id, _, variant = test.partition("/")
    line = {"id": f"{test}[F-cpu]", "property": property_id, "function": "F", "outcome": outcome}
    line |= {"failure": {"kind": "wrong", **more}} if outcome == "fail" else {"vacuous": ndjson.UNCHECKED, **more}
    return {**line, "variant": variant} if variant else line


def test_special_values_and_averages_verify_no_gradient():
    assert verdict(_line("VJP-FD", "vacuous", examples=9)).word == "not verified"
    assert verdict(_line("VJP-FD/kinks", "vacuous", examples=9)).word == "not known"
    for agreeing, words in (("VJP-REF/averages", ["not verified"]), ("VJP-REF", [])):
        lines = [_line("VJP-FD", "vacuous", examples=9), _line(agreeing, "pass", examples=9)]
        assert [v.word for _, v in judged(lines, compared=True) if v] == words
        assert [v.word for _, v in judged(lines, compared=False) if v] == ["not verified"]


@pytest.mark.parametrize("variant", ["long", "small"])
def test_what_other_calls_verify_may_be_undecided_at_some_lengths_and_values(variant):
    assert verdict(_line(f"VJP-FD/{variant}", "vacuous", reason="kinks")) is None


@pytest.mark.parametrize("error", ["FlakyFailure", "FlakyReplay", "FlakyStrategyDefinition"])
def test_a_test_whose_calls_do_not_repeat_is_no_error_of_the_suite(error):
    line = {**_line("DBL-ONCE", "error"), "failure": {"type": error, "message": "Inconsistent data"}}
    found = verdict(line)
    assert (found.word, found.follows) == ("wrong", "VJP-REPEAT")
    assert found.fault


@pytest.mark.parametrize("met", ["VJP-REF", "VJP-FD", "FWD-VALUE"])
def test_an_output_that_is_nan_is_said_of_forward(met):
    found = verdict(_line(met, kind="nan", what="output 0 (output) at (0,)", got="nan", expected="0.0"))
    assert found is not None
    assert (found.follows or met, found.guess.split()[0]) == ("FWD-VALUE", "forward")


def test_an_infinite_number_is_said_to_overflow():
    call = Call("F", (Tensor((1,), "float16", requires_grad=True),), ())
    assert "overflows in float16" in hints.of_overflow(call, "VJP-REF", np.float16(-np.inf), -1.0)
    assert hints.of_overflow(call, "FWD-VALUE", np.inf, 2.0).startswith("forward")
    for got, expected in ((np.nan, 1.0), (np.inf, np.inf), (2.0, 1.0), ("False", "True")):
        assert hints.of_overflow(call, "VJP-REF", got, expected) == ""


def test_the_property_about_it_heads_what_is_nan():
    nan = [_line(test, kind="nan") for test in ("VJP-UNUSED/severed", "VJP-LINEAR", "VJP-FINITE")]
    (head,) = grouping.headlines([(line, Verdict("not finite")) for line in nan])
    assert head["property"] == "VJP-FINITE"
    assert TRIED.index("VJP-FINITE") < min(map(TRIED.index, ("VJP-UNUSED", "VJP-LINEAR", "VJP-CHAIN")))


def test_only_some_variants_are_the_cause_of_a_failure_where_the_plain_test_holds():
    for variant, blocks in (("VJP-REF/averages", 2), ("VJP-PURE/owned", 1)):
        cause, follower = _line(variant), _line("FWD-LAYOUT")
        faults = [(cause, Verdict("wrong")), (follower, Verdict("wrong", follows=cause["property"]))]
        assert len(grouping.headlines(faults)) == blocks


def test_tests_that_meet_the_same_number_are_one_fault():
    one, another = (f"Call('F', args=(Tensor((1,)), {n}), cotangents=(Cotangent(),))" for n in (1, 2))
    for other, blocks in ((one, 1), (another, 2)):
        lines = [
            _line(test, what="slope", got="1.0", call=call) for test, call in (("VJP-FD", one), ("VJP-FD/long", other))
        ]
        assert len(grouping.headlines([(each, verdict(each)) for each in lines])) == blocks


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
    # A module may print, too.
    (tmp_path / "loud.py").write_text('print("loading", end=" ")\n')
    imports = {tmp_path / f"of {name}.py": f"import loud\n{text}" for name, text in texts.items()}
    script_runner.written(imports)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(tmp_path)
        assert {path.stem for path in script_runner.right(list(imports))} == {"of holds", "of falls through"}


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


@pytest.mark.parametrize(("second", "named"), [("forward", 0), ("setup_context", 1)])
def test_an_exception_is_named_when_it_is_found(second, named):
    finds, found = Finds(), []
    for test, at in (("VJP-FD", "forward"), ("VJP-REF", second)):
        raised = {"type": "IndexError", "at": at, "by": "function"}
        found += finds.rows(_line(test, kind="raised", raised=raised, got="IndexError: tuple index out of range"))
    assert found == [f"found: F: RAISES: IndexError (met in {test})" for test in ("VJP-FD", "VJP-REF")[: 1 + named]]


def test_the_verdict_says_what_was_said_when_faults_were_found(tmp_path):
    declaration, finds = writing(3), Finds()
    lines = list(lines_of(Checked(declaration, profile="quick", seed=1), "VJP-FD", "VJP-REF", "VJP-PURE"))
    found = [row for line in lines for row in finds.rows(line)]
    assert found == [
        "found: Writing: WRONG: VJP-FD",
        "found: Writing: RAISES: VJP-PURE (met in VJP-REF)",
    ]
    facts = discover(declaration, implementations.load("torch"), errors=False)
    text = "\n".join(rows("Writing", concluded(facts, lines, tmp_path)))
    assert text.count("WRONG: VJP-FD") == text.count("MUTATES: VJP-PURE") == 1
    assert re.search(r"same fault \(raises\): .*\bVJP-REF\b", text)
