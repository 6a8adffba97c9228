"""What `check` says of faults whose numbers mislead: NaN, masks drawn twice, and results of earlier calls."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

import torch

from autograd_conformance.harness.check import Declaration
from autograd_conformance.harness.check.discovery.discovery import discover
from autograd_conformance.harness.check.report import printing, script_runner
from autograd_conformance.harness.check.report.verdicts import verdict
from autograd_conformance.harness.outcomes import FAILS, HOLDS, UNDECIDED, combined
from autograd_conformance.harness.reports import ndjson
from autograd_conformance.implementations import load
from autograd_conformance.selftests.warm import started
from autograd_conformance.suites.declared import Checked

TORCH = load("torch")


def lines_of(declaration, *asked):
    return list(Checked(declaration, profile="quick", seed=1, shrink=False).lines(*asked))


def failures(lines):
    return {ndjson.test_of(line): line["failure"] for line in lines if line["outcome"] == "fail"}


def said(declaration, tmp_path, *asked):
    """The failures by test, and what `check` prints of them."""
    lines = lines_of(declaration, *asked)
    text = " ".join("\n".join(printing.rows("F", discover(declaration, TORCH), lines, tmp_path)).split())
    return failures(lines), text


class Mean(torch.autograd.Function):
    """The mean of the first entries of each row. Its backward divides by a length of zero."""

    @staticmethod
    def forward(ctx, x, lengths):
        kept = (torch.arange(x.shape[1])[None] < lengths[:, None]).to(x.dtype)
        ctx.save_for_backward(kept, lengths)
        return (x * kept).sum(1) / lengths.clamp(min=1).to(x.dtype)

    @staticmethod
    def backward(ctx, g):
        kept, lengths = ctx.saved_tensors
        return (g / lengths.to(g.dtype))[:, None] * kept, None


def test_nan_is_one_fault_and_not_one_of_each_property(tmp_path):
    declaration = Declaration(Mean, "float[b,t]", "int[b](0..t)")
    found, text = said(declaration, tmp_path, "VJP-FD", "VJP-LINEAR", "VJP-UNUSED")
    assert "VJP-FD" in found
    assert {failure["kind"] for failure in found.values()} == {"nan"}
    assert text.count("NOT FINITE: ") == 1
    assert "backward divides 0 by 0" in text
    assert "nonlinear=True" not in text


class Norm(torch.autograd.Function):
    """The norm of each row. Its gradient is 0 / 0 in a row of zeros."""

    @staticmethod
    def forward(ctx, x):
        y = (x * x).sum(-1, keepdim=True).sqrt()
        ctx.save_for_backward(x, y)
        return y

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return g * x / y


class ZeroAtZero(Norm):
    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return torch.where(y == 0, 0, g * x / torch.where(y == 0, 1, y))


def _by_library(x):
    return torch.linalg.vector_norm(x, dim=-1, keepdim=True)


def test_nan_is_no_convention_where_the_reference_has_a_number():
    for cls, kinds in ((Norm, {"nan"}), (ZeroAtZero, set())):
        declaration = Declaration(cls, "float[...,n]", reference=_by_library)
        found = failures(lines_of(declaration, "VJP-FINITE"))
        assert {failure["kind"] for failure in found.values()} == kinds


def _mask(x, p):
    return (torch.rand(x.shape) >= p).to(x.dtype) / (1 - p)


class DrawnTwice(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, p):
        ctx.p = p
        return x * _mask(x, p)

    @staticmethod
    def backward(ctx, g):
        return g * _mask(g, ctx.p), None


class DrawnOnce(DrawnTwice):
    @staticmethod
    def forward(ctx, x, p):
        mask = _mask(x, p)
        ctx.save_for_backward(mask)
        return x * mask

    @staticmethod
    def backward(ctx, g):
        return g * ctx.saved_tensors[0], None


class Rewound(DrawnTwice):
    """Draws the same mask again, from the state before forward."""

    @staticmethod
    def forward(ctx, x, p):
        ctx.state = torch.get_rng_state()
        return DrawnTwice.forward(ctx, x, p)

    @staticmethod
    def backward(ctx, g):
        with torch.random.fork_rng():
            torch.set_rng_state(ctx.state)
            return DrawnTwice.backward(ctx, g)


ASKED = ("VJP-FD", "VJP-ACCUMULATE", "VJP-CHAIN", "VJP-REPEAT")


def test_a_mask_that_backward_draws_again_is_one_fault_with_its_cause(tmp_path):
    found, text = said(Declaration(DrawnTwice, "float[...]", "float(0.1..0.9)", stochastic=True), tmp_path, *ASKED)
    assert "VJP-FD" in found
    assert {failure["follows"] for failure in found.values()} == {"ENV-RANDOM"}
    assert text.count("WRONG: ") == 1
    assert "backward draws random numbers of its own" in text


@pytest.mark.parametrize("cls", [DrawnOnce, Rewound])
def test_a_mask_that_is_kept_or_made_again_is_right(cls):
    lines = lines_of(Declaration(cls, "float[...]", "float(0.1..0.9)", stochastic=True), *ASKED)
    assert failures(lines) == {}


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


class SecondNeeded(torch.autograd.Function):
    """Has no gradient if its second output is unused."""

    @staticmethod
    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        return 2 * x, 3 * x

    @staticmethod
    def backward(_, g, h):
        return None if g is None or h is None else 2 * g + 3 * h


def test_a_chain_calls_the_function_once():
    found = failures(lines_of(Declaration(SecondNeeded, "float[n]"), "VJP-CHAIN", "VJP-UNUSED"))
    assert "VJP-UNUSED" in found
    assert "VJP-CHAIN" not in found


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


@pytest.mark.parametrize("error", ["FlakyFailure", "FlakyReplay", "FlakyStrategyDefinition"])
def test_a_test_whose_calls_do_not_repeat_is_no_error_of_the_suite(error):
    line = {"outcome": "error", "property": "DBL-ONCE", "failure": {"type": error, "message": "Inconsistent data"}}
    found = verdict(line)
    assert (found.word, found.follows) == ("wrong", "VJP-REPEAT")
    assert found.fault


@pytest.mark.parametrize("variant", ["long", "small"])
def test_what_other_calls_verify_may_be_undecided_at_some_lengths_and_values(variant):
    line = {
        "outcome": "vacuous",
        "property": "VJP-FD",
        "variant": variant,
        "vacuous": ndjson.UNCHECKED,
        "reason": "kinks",
    }
    assert verdict(line) is None
