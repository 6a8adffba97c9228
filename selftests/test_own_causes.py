"""The headline of a fault is the property nearest to its cause."""

from __future__ import annotations

import contextlib
import io
from types import SimpleNamespace

import pytest

pytest.importorskip("torch")

import torch

from autograd_conformance import implementations
from autograd_conformance.harness.check import Declaration
from autograd_conformance.harness.check.declaration.loading import Plan
from autograd_conformance.harness.check.discovery.discovery import discover
from autograd_conformance.harness.check.explain.causes import QUESTIONS, Fails
from autograd_conformance.harness.check.explain.explaining import Runs
from autograd_conformance.harness.check.report.grouping import headlines
from autograd_conformance.harness.check.report.verdicts import verdict
from autograd_conformance.harness.check.session.announcing import Announcer
from autograd_conformance.harness.check.session.child_discovery import Found
from autograd_conformance.harness.check.session.display import Display
from autograd_conformance.harness.outcomes import FAILS, UNDECIDED, Broken, Finding
from autograd_conformance.selftests.checking import accuses, faults_in, first_fault, lines_of
from autograd_conformance.selftests.specimens.causes import ASKED, Product, gradients
from autograd_conformance.strategies.calls import Call, Cotangent, Tensor
from autograd_conformance.suites.declared import Checked, claims


def another_error_for_zeros(ctx, g, h):
    if g is not None and not g.any():
        return gradients(ctx, g, h)[0]
    if g is not None and not g.is_contiguous():
        return gradients(ctx, g, h)[0][:, :0], None
    return gradients(ctx, g, h)


def test_each_question_names_tests_that_there_are():
    asked = {test for question in QUESTIONS if isinstance(question.asks, Fails) for test in question.asks.tests}
    assert asked <= {claim.test for claim, _ in claims().values()}
    assert asked


def test_two_errors_of_the_engine_are_two_faults():
    cls = type("Faulty", (Product,), {"backward": staticmethod(another_error_for_zeros)})
    checked = Checked(Declaration(cls, "float[n,m]", "float[n,m]"), seed=1, profile="quick", shrink=False)
    assert len(headlines(list(faults_in(lines_of(checked, *ASKED))))) > 1


class Dropped(torch.autograd.Function):
    """Dropout that draws its mask again in backward."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x * (torch.rand_like(x) >= 0.4)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * g * x * (torch.rand_like(x) >= 0.4)


DROPPED = Declaration(Dropped, "float[n]", stochastic=True)


def test_what_is_declared_is_not_advised():
    lines = Checked(DROPPED, profile="quick", seed=0).lines("VJP-FD", "DBL-CORRECT")
    faults = [verdict(line) for line in lines]
    faults = [v for v in faults if v is not None]
    assert len(faults) >= 4
    assert {v.follows for v in faults} == {"ENV-RANDOM"}
    assert not any("stochastic" in v.guess for v in faults)
    assert all("save what it drew" in v.guess for v in faults)


def test_a_failure_is_explained_if_time_is_up_before_it_is_the_smallest():
    checked = Checked(DROPPED, seed=0)
    claim, test = next(each for each in claims().values() if each[0].test == "VJP-FD/kinks")
    (subject,) = checked.subjects(claim)
    x = Tensor((3,), requires_grad=True, fill="dense", specials=((0, 1.0),))
    call = Call(subject.function.name, (x,), (Cotangent(),))
    finding = Finding("slope", "1.0", "2.0", repr(call), compared=(1.0, 2.0))

    def attempt():
        raise Broken("VJP-FD", "", "", finding)

    subject.record.until = 0.0
    with pytest.raises(Broken) as raised:
        Runs(subject, test, attempt).all()
    assert raised.value.finding.follows == "ENV-RANDOM"


class MaskedTwice(torch.autograd.Function):
    """x * w. The gradient of w is zero, and so cannot be differentiated, if x needs none."""

    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x * w

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        return (g * w, g * x) if ctx.needs_input_grad[0] else (None, None)


def test_a_second_derivative_that_a_mask_takes_away_is_the_fault_of_the_mask():
    faults = accuses(Declaration(MaskedTwice, "float[n]", "float[n]"), "VJP-MASK", "DBL-CORRECT")
    assert {line["property"] for line, _ in faults} == {"VJP-MASK", "DBL-CORRECT"}
    assert [line["property"] for line in headlines(faults)] == ["VJP-MASK"]


def _scaled(constant, factor=1.0):
    """x times a constant, whose backward has a factor too many."""

    def forward(_, x):
        return x * constant(x)

    methods = {"forward": forward, "backward": lambda _, g: g * 0.3 * factor}
    return type("Scaled", (torch.autograd.Function,), {name: staticmethod(f) for name, f in methods.items()})


@pytest.mark.parametrize(
    ("function", "argument", "words"),
    [
        (_scaled(lambda x: torch.where(x < 9, 0.3, 9.0).to(x.dtype)), "float[n]", "something is computed in float32"),
        (_scaled(lambda x: torch.tensor(0.3).to(x)), "complex[n]", "something is computed in float32"),
        (_scaled(lambda x: torch.tensor(0.3).to(x)), "float[]", "something is computed in float32"),
        (_scaled(lambda _: 0.3, factor=1.001), "float[n]", "times 0.999001"),
        (_scaled(lambda _: 0.3, factor=1 + 1e-5), "float[n]", "times 0.99999"),
    ],
)
def test_an_error_of_the_size_of_a_rounding_to_float32_is_called_so(function, argument, words):
    _, found = first_fault(Declaration(function, argument), "VJP-FD")
    assert (found.word, words in found.guess) == ("wrong", True), found.guess


class Flat(torch.autograd.Function):
    """x + x, whose backward has no answer for the length of nothing."""

    @staticmethod
    def forward(_, x):
        return x + x

    @staticmethod
    def backward(_, g):
        return 2 * g.reshape(g.shape[0], -1).reshape(g.shape)


class Whole(Flat):
    """One whose backward gives reshape a shape that is whole."""

    @staticmethod
    def backward(_, g):
        return 2 * g.reshape(*g.shape)


class FlatAndTripled(Flat):
    """One whose backward also has another factor where there are elements."""

    @staticmethod
    def backward(_, g):
        return 3 * g.reshape(g.shape[0], -1).reshape(g.shape)


def test_what_raises_for_empty_tensors_hides_no_other_fault():
    found = accuses(Declaration(FlatAndTripled, "float[n,m]"), "FWD-EMPTY", "VJP-FD", "VJP-CHAIN")
    words = {(line["property"], v.word) for line, v in found if "variant" not in line}
    assert words == {("FWD-EMPTY", "raises when empty"), ("VJP-FD", "wrong")}


class FlatAndTransposed(Flat):
    """One whose backward also raises for a layout."""

    @staticmethod
    def backward(_, g):
        return 2 * g.view(g.numel()).reshape(g.shape)


def test_what_raises_for_empty_tensors_alone_is_their_fault():
    asked = "FWD-LAYOUT", "FWD-EMPTY", "VJP-REF", "VJP-FD", "VJP-REPEAT", "ENV-RANDOM", "VJP-COTANGENT-LAYOUT"
    sizes = {"n": (0, 1, 2), "m": (1, 3)}
    ((line, verdict),) = accuses(Declaration(Flat, "float[n,m]", sizes=sizes), *asked)
    assert (line["property"], verdict.word) == ("FWD-EMPTY", "raises when empty")
    assert "for tensors without elements alone; return early there" in line["failure"]["hint"]
    assert accuses(Declaration(Whole, "float[n,m]", sizes=sizes), *asked) == []
    laid = accuses(Declaration(FlatAndTransposed, "float[n,m]", sizes=sizes), "VJP-COTANGENT-LAYOUT", "FWD-EMPTY")
    assert [(line["property"], v.follows) for line, v in laid] == [("VJP-COTANGENT-LAYOUT", "")]


def test_a_check_without_the_property_that_raises_when_empty_is_not_green(tmp_path):
    checked = Checked(Declaration(Flat, "float[n,m]", sizes={"n": (0, 1, 2), "m": (1, 3)}), seed=0, profile="quick")
    facts = discover(checked.declaration, implementations.load("torch"), errors=False)
    statuses = []
    for asked in (("FWD-DTYPE",), ("FWD-DTYPE", "FWD-EMPTY")):
        found = Found(Plan("mine", facts={"Flat": facts}), places={"Flat": "mine"}, described={"Flat": "float[n,m]"})
        with contextlib.redirect_stdout(io.StringIO()) as said:
            announcer = Announcer(found, Display(), tmp_path)
            for line in lines_of(checked, *asked):
                announcer.note(line)
            announcer.end("", SimpleNamespace(total=0, results=[], of_devices=list))
        assert "backward raises for tensors without elements" in said.getvalue()
        statuses.append(announcer.statuses["Flat"])
    assert statuses == [UNDECIDED, FAILS]
