"""The questions about the cause of a fault, and what is said of it in the end."""

from __future__ import annotations

import contextlib
import io
from types import SimpleNamespace

import pytest

pytest.importorskip("torch")

from autograd_conformance import implementations
from autograd_conformance.harness.check import Declaration
from autograd_conformance.harness.check.declaration.loading import Plan
from autograd_conformance.harness.check.discovery.discovery import discover
from autograd_conformance.harness.check.explain.causes import QUESTIONS, Fails
from autograd_conformance.harness.check.explain.explaining import Runs
from autograd_conformance.harness.check.session.announcing import Announcer
from autograd_conformance.harness.check.session.child_discovery import Found
from autograd_conformance.harness.check.session.display import Display
from autograd_conformance.harness.outcomes import FAILS, UNDECIDED, Broken, Finding
from autograd_conformance.selftests.checking import lines_of
from autograd_conformance.selftests.specimens.causes import dropped
from autograd_conformance.selftests.specimens.empty import flat
from autograd_conformance.selftests.specimens.functions import custom
from autograd_conformance.strategies.calls import Call, Cotangent, Tensor
from autograd_conformance.suites.declared import Checked, claims


def test_each_question_names_tests_that_there_are():
    asked = {test for question in QUESTIONS if isinstance(question.asks, Fails) for test in question.asks.tests}
    assert asked <= {claim.test for claim, _ in claims().values()}
    assert asked


def test_a_failure_is_explained_if_time_is_up_before_it_is_the_smallest():
    checked = Checked(dropped, seed=0)
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


doubled_flat = custom("Flat", forward=lambda _, x: x + x, backward=lambda _, g: flat(g))


def test_a_check_without_the_property_that_raises_when_empty_is_not_green(tmp_path):
    checked = Checked(
        Declaration(doubled_flat, "float[n,m]", sizes={"n": (0, 1, 2), "m": (1, 3)}), seed=0, profile="quick"
    )
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
