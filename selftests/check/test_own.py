"""Users' Functions: what is found out, what is said of faults, and what of mistakes in declarations."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")

import torch

from autograd_conformance import implementations
from autograd_conformance.harness.check import Declaration, Factory
from autograd_conformance.harness.check.discovery.discovery import discover
from autograd_conformance.harness.check.report import printing
from autograd_conformance.harness.check.report.conclusion import concluded
from autograd_conformance.harness.check.report.facts_in_words import in_words
from autograd_conformance.harness.check.report.verdicts import verdict
from autograd_conformance.harness.outcomes import UsageProblem
from autograd_conformance.reference.properties import PROPERTIES
from autograd_conformance.selftests.check import user_ops
from autograd_conformance.selftests.check.checking import accuses, lines_of
from autograd_conformance.selftests.check.specimens.functions import custom, function
from autograd_conformance.selftests.conftest import outside_with
from autograd_conformance.suites.declared import Checked, claims

TORCH = implementations.load("torch")
OPS = Path(user_ops.__file__)
PAIR = ("float[n,m]", "float[m]", "int(0..3)")


# What is found.


def test_a_loud_refusal_is_no_fault_and_is_said():
    checked = Checked(Declaration(user_ops.Single, "float[...]"), profile="quick", seed=0)
    lines = list(checked.lines("DBL-CORRECT"))
    assert {(found.fault, "once=True" in found.advice) for found in map(verdict, lines)} == {(False, True)}
    facts = " ".join(in_words(discover(Declaration(user_ops.Viewing, "float[n,m]"), TORCH)))
    assert "RuntimeError: view" in facts


def test_a_reference_takes_tensors_or_arrays():
    with pytest.raises(UsageProblem, match="neither with tensors nor with arrays"):
        accuses(Declaration(user_ops.Scaled, *PAIR, reference=lambda *_: "nothing"), "FWD-VALUE")


def test_what_follows_from_another_fault_is_said():
    doubled = function(torch.sin, lambda g, _, x: (2 if x.dtype == torch.float32 else 1) * g * x.cos(), "Doubled")
    found = accuses(Declaration(doubled, "float[...]"))
    assert found
    assert {v.follows or line["property"] for line, v in found} == {"VJP-REF"}


def test_facts_are_found_out():
    class Several(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, k):
            ctx.set_materialize_grads(False)
            index = x.argmax(-1)
            ctx.mark_non_differentiable(index)
            if x.dtype == torch.float16:
                raise RuntimeError("no kernel for half")
            return x * k, x.float().sum(-1), index

        @staticmethod
        def backward(ctx, g, h, _):
            raise NotImplementedError

    facts = discover(Declaration(Several, "float[b,n]", "2.0 | 3.0"), TORCH)
    assert [output.differentiable for output in facts.outputs] == [True, True, False]
    assert [output.dtypes["float64"] for output in facts.outputs] == ["float64", "float32", "int64"]
    assert facts.dtypes == ("float64", "float32", "bfloat16")
    assert "no kernel for half" in facts.refused["float16"]
    assert not facts.materialize


class Squares(torch.autograd.Function):
    """x**2, with the members that a subclass adds."""

    @staticmethod
    def forward(x):
        return x * x

    @staticmethod
    def setup_context(ctx, inputs, _):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, g):
        return 2 * ctx.saved_tensors[0] * g


@pytest.mark.parametrize(
    ("members", "outcomes"),
    [
        ({}, []),
        ({"generate_vmap_rule": True}, ["pass"]),
        ({"vmap": staticmethod(lambda _, dims, x: (x * x, dims[0]))}, ["pass"]),
        ({"vmap": staticmethod(lambda *given: (given[-1] ** 2, 0))}, ["fail"]),
    ],
    ids=["none", "generated", "right", "wrong"],
)
def test_a_rule_for_vmap_is_checked_without_being_asked_for(members, outcomes):
    declaration = Declaration(type("Squares", (Squares,), members), "float[...]")
    assert [line["outcome"] for line in Checked(declaration, seed=0).lines("BATCH-VMAP")] == outcomes
    said = "has a vmap rule" in in_words(discover(declaration, TORCH))
    assert said == bool(outcomes)


def test_what_is_mostly_refused_is_not_said_to_hold(tmp_path):
    def rows(_, dims, x):
        if x.ndim != 2:
            raise RuntimeError("rows alone")
        return x * x, dims[0]

    declaration = Declaration(custom("Squares", Squares, vmap=rows), "float[...]")
    lines = list(Checked(declaration, seed=0).lines("BATCH-VMAP"))
    text = " ".join(
        " ".join(printing.rows("Squares", concluded(discover(declaration, TORCH), lines, tmp_path))).split()
    )
    assert "0 checks hold, 0 do not, 1 undecided" in text
    assert re.search(r"BATCH-VMAP: in \d+ of \d+ examples: batching: RuntimeError: rows alone", text)


def test_one_draw_for_a_batch_is_no_fault():
    class Dropout(torch.autograd.Function):
        @staticmethod
        def forward(x):
            kept = torch.rand_like(x) > 0.5
            return x * kept, kept

        @staticmethod
        def setup_context(ctx, _, outputs):
            ctx.mark_non_differentiable(outputs[1])
            ctx.save_for_backward(outputs[1])

        @staticmethod
        def backward(ctx, g, _):
            return g * ctx.saved_tensors[0]

        @staticmethod
        def vmap(_, dims, x):
            return Dropout.apply(x), (dims[0], dims[0])

    assert accuses(Declaration(Dropout, "float[...]", stochastic=True)) == []


@pytest.mark.parametrize("said", ["single_backward", "nonlinear", "stochastic", "surrogate"])
def test_a_limitation_that_does_not_hold_is_stale(said):
    (sentence,) = discover(Declaration(user_ops.Scaled, *PAIR, **{said: True}), TORCH).stale
    assert sentence.startswith(f"{said}=True: ")
    if said == "surrogate":
        assert discover(user_ops.rounded, TORCH).stale == ()


def test_random_numbers_that_backward_alone_draws_are_not_stale():
    class Sampled(torch.autograd.Function):
        @staticmethod
        def forward(x):
            return x * 1

        @staticmethod
        def setup_context(_, inputs, outputs):
            pass

        @staticmethod
        def backward(_, g):
            return 2 * g * (torch.rand_like(g) < 0.5)

    assert discover(Declaration(Sampled, "float[n]", stochastic=True), TORCH).stale == ()


@pytest.mark.parametrize("least", [0, 2])
def test_a_function_is_known_by_calls_whose_backward_works(least):
    class FewRows(torch.autograd.Function):
        @staticmethod
        def forward(_, x):
            return 2 * x

        @staticmethod
        def backward(_, g):
            if len(g) < least:
                raise RuntimeError("few rows")
            return 2 * g

    noted = []
    discover(Declaration(FewRows, "float[n,m]"), TORCH, note=noted.append, empty=False)
    in_half = [call for call in noted if call.dtype == "float16"]
    assert all(call.tensors[0].shape[0] >= least for call in in_half[-3:])
    # The others were tried because backward raised in double precision.
    assert all(call.tensors[0].shape[0] < least for call in in_half[:-3])


def test_every_property_has_advice():
    # Nothing is wrong with empty tensors or a device in a way of its own.
    assert all(each.advice for each in PROPERTIES.values() if each.id != "ENV-DEVICE")


# Mistakes in declarations.


@pytest.mark.parametrize(
    ("arguments", "options", "said"),
    [
        (("flaot[n]",), {}, "unknown kind of tensor 'flaot' in 'flaot[n]'; choose from: float, complex, number, int"),
        (("float[n] postive",), {}, "unknown word 'postive' in 'float[n] postive'; choose from: positive"),
        (("float[n?]",), {}, "'n?' is not a dimension"),
        (("float[n,m] spd",), {}, "a spd matrix has two dimensions of one name"),
        (("float[n]", "int[m](0..k-1)"), {}, "no tensor has a dimension 'k'"),
        (("int(0..3)",), {}, "there is nothing to differentiate"),
        (("float[n]", "int(3..1)"), {}, "3 is larger than 1"),
        (("float[n]", "mean"), {}, "'mean' does not describe an argument; if it is a text, quote it: 'mean'; write a"),
        (("float[n]", "mean | None"), {}, "argument; if it is a text, quote it: 'mean' | None; write a tensor or"),
        (("float[n](a..b)",), {}, "a floating range has numbers as bounds"),
        (("float[n] positive unit",), {}, "these words cannot be combined: positive unit"),
        (("float[n]",), {"dtypes": ["float63"]}, "unknown dtype 'float63'; choose from: float64"),
        (("float[n]",), {"also": ["vamp"]}, "unknown request 'vamp'; choose from: vmap"),
        (("float[n]",), {"inplace": [3]}, "there is no argument 3"),
        (("float[n]",), {"sizes": {"q": (1,)}}, "no tensor has a dimension 'q'; the dimensions are: n"),
        (("float[n]",), {"conditioning": 0}, "must be a number, and at least 1"),
    ],
)  # fmt: skip
def test_a_mistake_in_a_declaration_is_named(arguments, options, said):
    with pytest.raises(UsageProblem, match=re.escape(said)) as raised:
        Declaration(user_ops.Kept, *arguments, **options)
    assert f"{__file__}:" in str(raised.value)


def test_every_form_of_argument_is_drawn():
    """Each kind and word, and that what is drawn is what it says."""
    seen = {}

    def looking(x, *others):
        seen.setdefault("others", []).append(others)
        return x * 1.0

    arguments = (
        "float[b,n]", "float[...] positive", "float[b] nonzero", "float[b,n] unit", "float[n] separated",
        "float[b,n] sorted", "float[b,n] ball", "float[n,n] spd", "float[n,n] lower", "float[n,n] upper",
        "float[n](1.5..2)", "int[b](0..n-1)", "bool[b]", "permutation[n]", "int(0..3)", "float(0..1)", "bool",
        "'mean' | 'sum'", Factory(lambda seed: [seed]), {"a": 1}, "float[b] constant", "float[b]?",
    )  # fmt: skip
    # The lengths of these two, times every shape of the dots.
    sizes = {"b": (0, 2), "n": (1, 3)}
    checked = Checked(Declaration(looking, *arguments, name="looking", sizes=sizes), seed=0, shrink=False)
    assert [line["outcome"] for line in lines_of(checked, "VJP-REF")] == ["pass"]
    for values in seen["others"]:
        positive, nonzero, unit, distinct, ordered, ball, spd, lower, upper, ranged, index, flags, order = values[:13]
        assert torch.all(positive > 0)
        assert torch.all(nonzero != 0)
        assert torch.all((unit > 0) & (unit < 1))
        assert len(set(distinct.tolist())) == distinct.numel()
        assert torch.all(ordered.diff() > 0)
        assert torch.all(ball.double().norm(dim=-1) < 1)
        assert torch.all(torch.linalg.eigvalsh(spd.double()) > 0) or not spd.numel()
        assert torch.equal(lower, lower.tril())
        assert torch.equal(upper, upper.triu())
        assert torch.all((ranged >= 1.5) & (ranged <= 2))
        assert torch.all((index >= 0) & (index < max(unit.shape[1], 1)))
        assert flags.dtype == torch.bool
        assert sorted(order.tolist()) == list(range(order.numel()))
        assert values[13] in range(4)
        assert 0 < values[14] < 1
        assert values[15] in (False, True)
        assert values[16] in ("mean", "sum")
        assert isinstance(values[17], list)
        assert values[18] == {"a": 1}
        assert not values[19].requires_grad


# The user's own pytest suite.


def test_a_class_of_tests(tmp_path):
    (tmp_path / "test_mine.py").write_text(
        "import user_ops\nfrom autograd_conformance import Declaration, checks\n"
        "wrong = Declaration(user_ops.Wrong, 'float[n,m]', 'float[m]', 'int(0..3)')\n"
        "TestWrong = checks(wrong, profile='quick', seed=1)\n"
        "TestKept = checks(Declaration(user_ops.Single, 'float[...]'), profile='quick', seed=1)\n"
    )
    asked = ("TestWrong::test_VJP_FD", "TestWrong::test_VJP_PURE", "TestKept::test_VJP_FD", "TestKept::test_VJP_PURE")
    environment = {**outside_with(OPS.parent), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-W", "error", "--tb=short", "--strict-markers",
         "-p", "no:cacheprovider", *(f"test_mine.py::{name}" for name in asked)],
        cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 1, done.stdout + done.stderr
    failed = re.findall(r"^FAILED test_mine\.py::(\w+)::(\w+)", done.stdout, re.MULTILINE)
    assert ("TestWrong", "test_VJP_FD") in failed
    assert {name for name, _ in failed} == {"TestWrong"}
    assert "must hold: gradients agree with finite differences" in done.stdout


def test_every_test_of_the_properties_has_a_name():
    assert {claim.property_id for claim, _ in claims().values()} == set(PROPERTIES)
