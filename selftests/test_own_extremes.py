"""Users' Functions at large and small values: what built-in operations of the same formula do is right."""

from __future__ import annotations

import re

import numpy as np
import pytest

pytest.importorskip("torch")

import torch
from torch.nn import functional

from autograd_conformance.harness.check import Declaration
from autograd_conformance.harness.outcomes import Broken
from autograd_conformance.selftests.checking import DRAWS, faults_of
from autograd_conformance.selftests.specimens.extremes import POSITIVE, WRONG
from autograd_conformance.selftests.specimens.fields.signal import Biquad
from autograd_conformance.selftests.specimens.functions import function
from autograd_conformance.strategies.calls import Call, Cotangent, Tensor
from autograd_conformance.suites.declared import Checked, claims


def failures(declaration, seed=0, *, profile="gate", shrink=False):
    """The failures of the tests of VJP-FINITE."""
    lines = Checked(declaration, profile=profile, seed=seed, shrink=shrink).lines("VJP-FINITE")
    return [line["failure"] for line in lines if line["outcome"] not in ("pass", "vacuous")]


def test_a_gradient_that_does_not_fit_may_spoil_another_one():
    call = Call(
        Biquad.__name__,
        (
            Tensor((6,), dtype="float16", requires_grad=True, fill="zeros"),
            Tensor((), dtype="float16", requires_grad=True, fill="zeros", specials=((0, 128.0),)),
        ),
        (Cotangent(),),
    )
    declaration = Declaration(Biquad, "float[t]", "float[]", once=True, sizes={"t": (1, 2, 6)})
    subject = next(iter(Checked(declaration).subjects(claims()["VJP_FINITE"][0])))
    example = subject.example(call)
    gradients = example.run()[1]
    assert np.isnan(gradients[1].item())
    subject.assert_finite(example, gradients, given=True)


def test_the_message_names_the_value_and_the_dtype():
    f, arguments = WRONG["sigmoid"]
    (failure, *_) = failures(Declaration(f, *arguments), shrink=True)
    value, dtype = re.match(r"the entry is (\S+) in (\w+), and the outputs are finite here", failure["hint"]).groups()
    assert float(re.search(r"specials=\(\(\d+, ([-+.e\d]+)", failure["call"])[1]) == pytest.approx(
        float(value), rel=1e-5
    )
    assert dtype == "float64" or f"dtype='{dtype}'" in failure["call"]


def _through_numpy(x):
    return torch.from_numpy(np.log(x.detach().numpy()))


@pytest.mark.parametrize(("forward", "known"), [(torch.log, True), (_through_numpy, False)])
def test_tiny_numbers_in_double_precision_are_judged_or_counted(forward, known):
    wrong = function(forward, lambda g, _, x: g * x / (x * x))
    declaration = Declaration(wrong, *POSITIVE, dtypes="float64")
    call = Call("Made", (Tensor((1,), requires_grad=True, specials=((0, 1e-300),)),), (Cotangent(),))
    subject = next(iter(Checked(declaration).subjects(claims()["VJP_FINITE"][0])))
    example = subject.example(call)
    gradients = example.run()[1]
    if known:
        with pytest.raises(Broken, match="expected about 1e\\+300"):
            subject.assert_finite(example, gradients, given=True)
    else:
        subject.assert_finite(example, gradients, given=True)
        assert (subject.record.checks, subject.record.inconclusive) == (1, 1)


def unit(w, x):
    """Built-in operations alone, whose squares underflow."""
    return functional.normalize(w.t() @ x, dim=0)


@pytest.mark.parametrize(("profile", "seed"), DRAWS)
def test_what_built_in_operations_lose_is_no_fault_of_them(profile, seed):
    declaration = Declaration(unit, "float[n,m]", "float[n]", sizes={"n": (1, 2, 3)})
    asked = ("FWD-VALUE", "VJP-REF", "VJP-FD", "VJP-UNUSED", "VJP-LINEAR", "VJP-FINITE") if profile == "quick" else ()
    found = faults_of(declaration, *asked, profile=profile, seed=seed, shrink=False)
    assert [line["id"] for line, v in found if (v.follows or line["property"]) != "FWD-VALUE"] == []


def _of_log_softmax(g, y, _):
    """In half precision the square of the sum of a long row overflows, and so does what this sums."""
    return g - y.exp() * g.sum(-1, keepdim=True)


@pytest.mark.parametrize("seed", range(4), ids="seed{}".format)
def test_a_composition_that_overflows_by_itself_says_nothing(seed):
    log_softmax = function(lambda x: torch.log_softmax(x, -1), _of_log_softmax, "LogSoftmax")
    declaration = Declaration(log_softmax, "float[n]", sizes={"n": (257,)})
    assert {line["outcome"] for line in Checked(declaration, seed=seed).lines("VJP-CHAIN")} == {"pass"}
