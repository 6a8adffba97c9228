"""Users' Functions at kinks, at matrices with equal eigenvalues, at large and small values, and of sizes by values."""

from __future__ import annotations

import re

import numpy as np
import pytest

pytest.importorskip("torch")

import torch
from torch.nn import functional

from autograd_conformance import implementations
from autograd_conformance.harness.check import Declaration
from autograd_conformance.harness.check.discovery.discovery import discover
from autograd_conformance.harness.outcomes import Broken
from autograd_conformance.harness.reports.ndjson import Line
from autograd_conformance.reference import ladder
from autograd_conformance.selftests.check.checking import DRAWS, faults_of, lines_of
from autograd_conformance.selftests.check.specimens import extremes
from autograd_conformance.selftests.check.specimens.extremes import POSITIVE
from autograd_conformance.selftests.check.specimens.fields.signal import Biquad
from autograd_conformance.selftests.check.specimens.functions import function
from autograd_conformance.selftests.check.specimens.kinks import ONE, WRONG, abs_at, amax, of_sparse, split
from autograd_conformance.selftests.check.specimens.matrices import InfiniteSquares, Squares, Undefined, symmetrically
from autograd_conformance.selftests.check.specimens.resizing import Positive
from autograd_conformance.selftests.support import scripts
from autograd_conformance.strategies.calls import Call, Cotangent, Tensor
from autograd_conformance.suites.declared import Checked, claims

TWIN = {
    "an entry of a sparse tensor at one": function(torch.sparse.mm, of_sparse),
    "no gradient at zero": function(lambda x: 3 * x, lambda g, *_: 3 * g),
    "every tie gets all": function(amax, split),
    "five at the kink of abs": abs_at(0.0),
}


def at_kinks(declaration, seed=0, *, profile="gate") -> Line:
    """The result of the test at kinks."""
    (line,) = lines_of(Checked(declaration, profile=profile, seed=seed, shrink=False), "VJP-FD/kinks")
    return line


@pytest.mark.parametrize("fault", TWIN)
def test_a_script_shows_it_and_accepts_any_convention(fault, tmp_path):
    wrong, arguments = WRONG[fault]
    with scripts.importable(Declaration(wrong, *arguments), tmp_path) as declaration:
        text = at_kinks(declaration)["failure"]["script"]
        assert scripts.status(text, DECLARED=declaration) == 1, text
        assert scripts.status(text, DECLARED=Declaration(TWIN[fault], *arguments)) == 0, text


def test_a_script_in_single_precision(tmp_path):
    wrong, arguments = WRONG["no gradient at zero"]
    with scripts.importable(Declaration(wrong, *arguments, dtypes="float32"), tmp_path) as declaration:
        text = at_kinks(declaration)["failure"]["script"]
        assert scripts.status(text, DECLARED=declaration) == 1, text
        right = Declaration(TWIN["no gradient at zero"], *arguments, dtypes="float32")
        assert scripts.status(text, DECLARED=right) == 0, text


def test_a_surrogate_is_not_asked():
    straight = function(torch.floor, lambda g, *_: g)
    checked = Checked(Declaration(straight, *ONE, surrogate=True), seed=0)
    claim = next(claim for claim, _ in claims().values() if claim.test == "VJP-FD/kinks")
    assert list(checked.subjects(claim)) == []


def scaled_in(dtype):
    """Eight times x in one precision alone, with the right gradient."""

    class Scaled(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):  # noqa: ARG004 - the interface
            if x.dtype != dtype:
                raise TypeError(f"only {dtype}")
            return 8 * x

        @staticmethod
        def backward(ctx, g):  # noqa: ARG004 - the interface
            return 8 * g

    return Scaled


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
def test_a_lower_precision_has_larger_steps_or_none(dtype):
    """The numbers of half precision are further apart than the points that are compared."""
    checked = Checked(Declaration(scaled_in(dtype), "float[n,m]"), profile="quick", seed=1)
    lines = list(checked.lines("VJP-FD"))
    held = ["pass"] if dtype is torch.float32 else []
    assert [line["outcome"] for line in lines if line.get("variant") == "kinks"] == held
    assert not any(line["outcome"] == "fail" for line in lines)


@pytest.mark.parametrize(
    ("declaration", "got", "hint"),
    [
        (Declaration(symmetrically(Undefined), "float[n,n] symmetric", once=True), "nan", "difference of eigenvalues"),
        (Declaration(Squares, "float[n,n]"), "nan", "division by 0"),
        (Declaration(symmetrically(InfiniteSquares), "float[n,n] symmetric"), "inf", "division by 0"),
    ],
    ids=["eigenvalues", "norm", "infinite"],
)
def test_a_finding_says_what_was_got_and_how_well_the_slope_is_known(declaration, got, hint):
    (line,) = lines_of(Checked(declaration, seed=0), "VJP-FD/matrices")
    failure = line["failure"]
    assert failure["got"] == got
    assert re.fullmatch(r"a number within \S{1,6} of -?\S{1,8}", failure["expected"])
    assert hint in failure["hint"]


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
    f, arguments = extremes.WRONG["sigmoid"]
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


@pytest.mark.parametrize(("function", "known"), [(Positive, True), (torch.exp, False)])
def test_it_is_known_which_they_are(function, known):
    assert discover(Declaration(function, "float[n]"), implementations.load("torch")).resizes == known


def test_steps_with_another_size_are_left_out():
    def above(points):
        (x,) = points
        return (3 * x[x > 1],)

    def found(*start):
        ones = [ladder.np.ones(n) for n in (len(start), sum(x > 1 for x in start))]
        return ladder.slope(above, (ladder.np.array(start),), (ones[0],), (ones[1],))

    # The two largest steps make the second entry larger than 1.
    between = found(2.0, 0.98)
    assert between.reason is None
    assert abs(between.value - 3) <= between.bound
    assert found(2.0, 1.0).reason == ladder.TOO_FEW
