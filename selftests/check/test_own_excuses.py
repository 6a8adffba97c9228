"""Faults in users' Functions that look like an excuse are faults, and what was not verified is not green."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytest.importorskip("torch")

import torch

from autograd_conformance import implementations
from autograd_conformance.harness.check import Declaration
from autograd_conformance.harness.check.discovery.discovery import discover
from autograd_conformance.harness.check.report import printing
from autograd_conformance.harness.check.report.conclusion import concluded
from autograd_conformance.harness.check.report.facts_in_words import in_words
from autograd_conformance.harness.testing.examined import raised_by_suite
from autograd_conformance.implementations import adapting
from autograd_conformance.selftests.check.checking import faults_of, lines_of
from autograd_conformance.selftests.check.specimens import dtypes
from autograd_conformance.selftests.check.specimens import excuses as ops
from autograd_conformance.selftests.check.specimens.builtins import BUILTINS, EACH_KIND
from autograd_conformance.selftests.conftest import outside_with
from autograd_conformance.selftests.support import scripts
from autograd_conformance.selftests.support.warm import started
from autograd_conformance.suites.declared import Checked, claims

TORCH = implementations.load("torch")


# No gradient without a verification.


def text_of(declaration, folder, *properties):
    lines = list(Checked(declaration, profile="quick", seed=0, shrink=False).lines(*properties))
    return " ".join(
        " ".join(printing.rows(declaration.name, concluded(discover(declaration, TORCH), lines, folder))).split()
    )


@pytest.mark.parametrize(
    ("declaration", "why"),
    [
        (dtypes.half, "computed in half precision, which is too coarse for finite differences"),
        (Declaration(dtypes.Rough, "float[n]"), "of them inconclusive (the last one: "),
    ],
    ids=["half", "rough"],
)
def test_a_gradient_that_was_not_verified_is_said_first(declaration, why, tmp_path):
    text = text_of(declaration, tmp_path, "VJP-FD", "VJP-REF")
    assert re.search(
        r"gradient not verified; \d checks? holds?, \d do(es)? not, 1 undecided .*GRADIENT NOT VERIFIED: VJP-FD", text
    )
    assert why in text
    assert "give reference=" in text


def test_a_reference_verifies_a_gradient_too(tmp_path):
    text = text_of(dtypes.half_compared, tmp_path, "VJP-FD", "VJP-REF")
    assert re.search(r"\d checks? holds?, 0 do not$", text.strip())
    assert "VJP-FD" not in text
    assert "give reference=" not in text


def test_what_was_done_is_not_advised(tmp_path):
    def in_half(x):
        dtypes.Half.apply(x)
        return x.sin()

    declaration = Declaration(dtypes.Half, "float[n]", reference=in_half)
    text = text_of(declaration, tmp_path, "VJP-FD", "VJP-REF", "DBL-CORRECT")
    assert "SECOND DERIVATIVE NOT VERIFIED: DBL-CORRECT" in text
    assert "let reference= take float64" in text
    assert "give reference=" not in text


def test_what_was_not_verified_has_an_exit_status_and_is_never_green(tmp_path):
    (tmp_path / "mine.py").write_text(
        "from dtypes import half, single\n"
        "from excuses import SingleInForward\n"
        "from autograd_conformance.harness.check import Declaration\n"
        "coarse = Declaration(SingleInForward, 'float[n,m]')\n"
    )
    words = ["check", "mine.py", "--properties", "VJP-FD", "--profile", "quick", "--seed", "0"]
    environment = outside_with(Path(ops.__file__).parent)
    done = started(*words, folder=tmp_path, environment=environment, torch=True)
    assert done.returncode == 2, done.stdout + done.stderr
    assert "all numbers of output 0 (output) are of single precision" in done.stdout
    assert "\n3 Functions: 1 without a fault, 2 not verified (Half, SingleInForward)\n" in done.stdout


# A refusal comes from forward.


def test_a_refusal_of_extreme_values_is_no_fault():
    (line,) = lines_of(Checked(Declaration(ops.HugeRefused, "float[n,m]"), seed=0), "VJP-FINITE")
    assert line["outcome"] == "pass"
    assert line["excuse"] == "extreme values: ValueError: too large"


def test_a_refusal_of_empty_tensors_is_no_fault_of_an_optional_argument():
    declaration = Declaration(ops.EmptyRefusedWithoutBias, "float[n,m]", "float[m]?")
    checked = Checked(declaration, seed=0, shrink=False)
    lines = list(lines_of(checked, "VJP-FD", "VJP-REF", "FWD-EMPTY", "FWD-MASK", "VJP-REPEAT"))
    assert [line["failure"] for line in lines if line["outcome"] == "fail"] == []
    assert {line["property"] for line in lines if line.get("excused")} >= {"FWD-EMPTY", "VJP-REF"}


# What the suite itself raises is not a refusal.


def test_a_gradient_that_is_missing_is_no_refusal_of_the_second_one():
    checked = Checked(Declaration(ops.OneMissing, "float[n]", "float[n]"), profile="quick", seed=0, shrink=False)
    lines = list(checked.lines("VJP-FD", "DBL-CORRECT"))
    assert {line["outcome"] for line in lines if line.get("variant") != "small"} == {"fail"}
    assert sum(line.get("excused", 0) for line in lines) == 0


def test_a_rule_for_forward_mode_is_a_fact():
    assert "has a jvp" in in_words(discover(Declaration(ops.Flagged, "float[n,m]"), TORCH))
    assert "has a jvp" not in in_words(discover(Declaration(ops.Sine, "float[n,m]"), TORCH))


def raised_in(action):
    with pytest.raises(Exception) as raised:  # noqa: PT011 - any
        action()
    return raised.value


def test_only_the_function_and_the_framework_refuse():
    subject = next(Checked(dtypes.single, seed=0).subjects(claims()["VJP_REF"][0]))
    x = torch.ones(2, requires_grad=True)
    in_suite = raised_in(lambda: adapting.used((x,), (x, x)))
    in_function = raised_in(lambda: subject.implementation.function(dtypes.Single)(x.double(), x))
    in_framework = raised_in(lambda: subject.implementation.grad([x * 2], [x], [torch.ones(3)], False))
    assert [raised_by_suite(each) for each in (in_suite, in_function, in_framework)] == [True, False, False]


# Lower precision inside.


@pytest.mark.parametrize(
    ("function", "result"),
    [
        (ops.SingleInForward, "output 0 (output)"),
        (ops.SingleInBackward, "gradient of argument 0 (x)"),
        (ops.SingleInSum, "output 0 (output)"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_numbers_of_single_precision_in_a_result_of_double_precision_are_a_finding(function, result):
    declaration = Declaration(function, "float[n,m]")
    assert discover(declaration, TORCH).coarse == (result,)
    ((line, found),) = faults_of(declaration, "FWD-DTYPE", "VJP-FIT")
    assert (found.word, found.guess, line["variant"]) == ("misfits", "", "precision")
    failure = line["failure"]
    assert failure["what"] == f"the numbers of {result}"
    assert "casts inside; compute in the dtype of the inputs" in failure["hint"]
    assert "Tensor((1, 1)" in failure["call"]
    assert scripts.status(failure["script"]) == 1
    assert discover(Declaration(function, "float[n,m]", dtypes=["float32", "float16"]), TORCH).coarse == ()


SUSPICIOUS = {
    "rounded": (lambda x: (x * 8).round() / 8 + 0 * x, "float[n]"),
    "scaled": (lambda x: x * 0.5, "float[n,m]"),
    "of a table": (lambda x: x * torch.tensor(0.1).to(x), "float[n]"),
    "counted": (lambda x: (x > 0).to(x).sum(-1) + 0 * x.sum(-1), "float[n,m]"),
    "single next to double": (lambda x: x.sin() + x.detach().float().to(x), "float[n]"),
    "linear": (lambda x, w: x @ w, "number[n,k]", "number[k,m]"),
}


@pytest.mark.parametrize("name", SUSPICIOUS)
def test_round_numbers_and_constants_are_no_finding(name):
    function, *arguments = SUSPICIOUS[name]
    assert discover(Declaration(function, *arguments), TORCH).coarse == ()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", EACH_KIND)
def test_no_function_of_torch_is_said_to_be_coarse(name):
    assert discover(BUILTINS[name], TORCH).coarse == ()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", sorted(set(BUILTINS) - set(EACH_KIND)))
def test_no_other_function_of_torch_is_said_to_be_coarse(name):
    assert discover(BUILTINS[name], TORCH).coarse == ()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--properties", "ENV-COMPILE,ENV-AUTOCAST"], "add --also compile and --also autocast"),
        (["--properties", "VJP-FD", "--surrogate"], "what is declared leaves it out"),
    ],
    ids=["requests", "declared"],
)
def test_where_no_test_applies_the_reason_is_given(tmp_path, options, says):
    environment = outside_with(Path(ops.__file__).parent)
    words = ["check", "excuses:Sine", "--arg", "float[n]", "--profile", "quick", *options]
    done = started(*words, folder=tmp_path, environment=environment, torch=True)
    assert done.returncode == 2, done.stdout
    assert says in " ".join(done.stderr.split())
    assert "None" not in done.stderr
