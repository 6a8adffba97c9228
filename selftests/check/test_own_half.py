"""Users' Functions in half precision: every number of a 16-bit dtype, and averages of errors."""

from __future__ import annotations

import re

import numpy as np
import pytest

pytest.importorskip("torch")

import torch

from autograd_conformance import implementations
from autograd_conformance.harness.check import Declaration
from autograd_conformance.harness.check.bounds.extremes import _some
from autograd_conformance.harness.check.bounds.sweeping import units
from autograd_conformance.harness.check.discovery.discovery import discover
from autograd_conformance.harness.check.report.verdicts import judged
from autograd_conformance.harness.reports import ndjson
from autograd_conformance.reference.averages import CALLS, systematic
from autograd_conformance.reference.definitions import Array
from autograd_conformance.reference.rounding import PRECISION, round_to
from autograd_conformance.selftests.check.checking import lines_of
from autograd_conformance.selftests.check.specimens import averages, excuses
from autograd_conformance.selftests.check.specimens.functions import HALF, custom, function
from autograd_conformance.selftests.check.specimens.sweeps import ONE, WRONG
from autograd_conformance.selftests.support import scripts
from autograd_conformance.strategies.sweeps import NUMBERS, numbers
from autograd_conformance.suites.declared import Checked, claims

TORCH = implementations.load("torch")


def lines(declaration, seed=0, *, shrink=False):
    """The results of the tests of every number."""
    checked = Checked(declaration, seed=seed, shrink=shrink)
    return list(lines_of(checked, *(claim.test for claim, _ in claims().values() if claim.variant == "sweep")))


def failures(declaration, seed=0, *, shrink=False):
    found = lines(declaration, seed, shrink=shrink)
    return {line["property"]: line["failure"] for line in found if line["outcome"] == "fail"}


def test_the_message_and_the_script_have_the_number(tmp_path):
    _, forward, gradient, arguments = WRONG["a root whose cube overflows"]
    with scripts.importable(Declaration(function(forward, gradient), *arguments), tmp_path) as declaration:
        failure = failures(declaration, shrink=True)["VJP-FINITE"]
    assert failure["hint"].startswith("the entry is 111.438 in float16, and the outputs are finite here")
    assert "torch.float16" in failure["script"]


def _centred(x):
    return x - x.mean(-1, keepdim=True)


@pytest.mark.parametrize(
    ("f", "arguments"),
    [
        (torch.softmax, ("float[b,n]", "-1")),
        (torch.cumsum, ("float[n]", "0")),
        (_centred, ("float[b,n]",)),
        (lambda x: x * torch.arange(x.shape[-1]), ("float[b,n]",)),
        (lambda x: x.flip(-1), ("float[n]",)),
        (lambda x: x.outer(x), ("float[n]",)),
        (torch.mul, (*ONE, *ONE)),
        (torch.sum, ("float[n]",)),
    ],
)
def test_what_mixes_entries_is_not_taken_for_a_map(f, arguments):
    declaration = Declaration(f, *arguments)
    assert not discover(declaration, TORCH).maps_entries
    assert lines(declaration) == []


@pytest.mark.parametrize("dtype", HALF)
def test_every_number_is_tried(dtype):
    found = numbers(dtype, Array(name="x", dims="*s"))
    assert found.shape == (NUMBERS,)
    assert len({*found.tolist()}) == NUMBERS - {"float16": 2 * 2**10, "bfloat16": 2 * 2**7}[dtype] - 1
    assert np.max(found) == PRECISION[dtype].largest
    assert np.all(numbers(dtype, Array(name="x", dims="*s", values="positive")) >= 0.125)
    bounded = numbers(dtype, Array(name="x", dims="*s", values="unit", bounds=(2.0, 3.0)))
    assert np.all((bounded > 2) & (bounded < 3))


def test_errors_are_in_units_of_the_last_place():
    got, expected = np.array([1 + 2**-10, 2.0, np.inf, np.nan]), np.array([1.0, 2 - 2**-11, 3.0, 1e9])
    np.testing.assert_array_equal(units(got, expected, "float16"), [1.0, 0.5, np.inf, np.nan])
    # Smaller numbers may be differences of larger ones.
    np.testing.assert_array_equal(units(np.array([2.0**-10]), np.array([0.0]), "float16"), [1.0])


def test_a_right_function_has_no_alarming_fact():
    tanh = function(torch.tanh, lambda g, y, _: g * (1 - y * y))
    for fact in discover(Declaration(tanh, *ONE), TORCH).sweeps:
        assert all(float(number) < 2 for number in re.findall(r"by ([0-9.e+-]+) ulp", fact))


@pytest.mark.parametrize("function", [excuses.HugeRefused, excuses.LargeRefused])
def test_numbers_that_forward_refuses_are_left_out(function):
    declaration = Declaration(function, *ONE)
    assert {line["property"]: line["outcome"] for line in lines(declaration)} == {
        "VJP-FINITE": "pass", "VJP-REF": "pass", "VJP-FD": "pass"
    }  # fmt: skip
    for fact in discover(declaration, TORCH).sweeps:
        dtype = re.search(r" in (\w+)", fact)[1]
        assert ("that forward takes" in fact) == (PRECISION[dtype].largest > function.LARGEST)
        assert not re.search(r"by ([1-9]|inf)", fact), fact


@pytest.mark.parametrize("seed", range(3), ids="seed{}".format)
def test_what_is_wrong_at_a_number_that_forward_takes_is_found(seed):
    found = failures(Declaration(excuses.LargeRefusedWrongBelow, *ONE), seed=seed)
    assert "specials=((0, " in found["VJP-FD"]["call"], found


def test_each_range_of_numbers_has_a_suspect():
    explained = np.arange(1.0, 2.0, 2.0**-10)
    suspects = _some(np.concatenate([explained, [-1500.0], 2.0 ** np.arange(-20, -17)]))
    assert suspects == [2.0**-20, 2.0**-19, 2.0**-18, 1.0, -1500.0]
    assert len(_some(2.0 ** np.arange(-30, 30))) == 16


def test_the_largest_errors_are_facts():
    facts = discover(Declaration(function(torch.exp, lambda g, y, _: g * y), *ONE), TORCH)
    assert facts.sweeps == tuple(
        f"every number in {dtype}: output off by 0.5 ulp, gradient by 0.5 ulp" for dtype in HALF
    )
    _, forward, gradient, arguments = WRONG["a root whose cube overflows"]
    first, _ = discover(Declaration(function(forward, gradient), *arguments), TORCH).sweeps
    assert first.endswith("not finite at 111.4")


@pytest.mark.parametrize("dtype", HALF)
def test_chance_is_not_taken_for_a_fault(dtype):
    # The limit without what is allowed: chance alone must not come near its standard errors.
    rng, largest = np.random.default_rng(0), 0.0
    for _ in range(400):
        expected = rng.standard_normal((CALLS, 4))
        got = round_to(expected, dtype)
        for each in systematic(got, expected, PRECISION[dtype]):
            spread = each.limit - each.least
            largest = max(largest, abs(each.value) / spread)
    assert 0.3 < largest < 1


# Second derivatives of what takes half precision only, next to those of a reference.


def _half_only(forward, gradient):
    """A Function of half precision alone whose backward is ``gradient(g, x)``."""

    def run(ctx, x):
        if x.dtype not in HALF.values():
            raise TypeError("half precision alone")
        ctx.save_for_backward(x)
        return forward(x)

    return custom("HalfOnly", forward=run, backward=lambda ctx, g: gradient(g, *ctx.saved_tensors))


def _swish_slope(g, x):
    s = x.sigmoid()
    return g * (s + x * s * (1 - s))


class _Doubled(torch.autograd.Function):
    """The same gradient, twice as steep."""

    @staticmethod
    def forward(_, x):
        return x.clone()

    @staticmethod
    def backward(_, g):
        return 2 * g


def _softmax_slope(g, x):
    y = x.softmax(-1)
    return y * (g - (g * y).sum(-1, keepdim=True))


def swish(x):
    return x * x.sigmoid()


SECOND = {
    "swish": (swish, _swish_slope, *ONE, {"pass"}),
    "softmax": (lambda x: x.softmax(-1), _softmax_slope, averages.ROWS, {"pass"}),
    "exp, computed in single precision": (
        torch.exp, lambda g, x: (g.float() * x.float().exp()).to(x.dtype), *ONE, {"pass"},
    ),
    "twice": (lambda x: x * 2, lambda g, _: g * 2, *ONE, {"pass"}),
    "detached": (swish, lambda g, x: _swish_slope(g, x.detach()), *ONE, {"silently detached"}),
    "partly detached": (swish, lambda g, x: g * (x.sigmoid() + (swish(x) * (-x).sigmoid()).detach()), *ONE, {"wrong"}),
    "twice as steep": (swish, lambda g, x: _swish_slope(g, _Doubled.apply(x)), *ONE, {"wrong"}),
}  # fmt: skip


@pytest.mark.parametrize("seed", range(2), ids="seed{}".format)
@pytest.mark.parametrize("name", SECOND)
def test_second_derivatives_in_half_precision_alone_are_compared_with_a_reference(name, seed):
    forward, gradient, argument, words = SECOND[name]
    declaration = Declaration(_half_only(forward, gradient), argument, reference=forward)
    checked = Checked(declaration, seed=seed, shrink=False)
    found = list(lines_of(checked, "DBL-CORRECT", "DBL-CORRECT/averages", "VJP-REF", "VJP-REF/averages", "VJP-FD"))
    verdicts = {v.word for _, v in judged(found, compared=True) if v}
    assert verdicts == words - {"pass"}
    assert "DBL-CORRECT/averages" in {ndjson.test_of(line) for line in found}


def _in(*dtypes):
    """The reference of swish, written for these dtypes alone."""

    def reference(x):
        if x.dtype not in dtypes:
            raise TypeError(f"not for {x.dtype}")
        return swish(x)

    return reference


REFERENCES = {
    "in any dtype": swish,
    "in double precision": _in(torch.float64),
    "in single precision": _in(torch.float32),
    "which widens": lambda x: swish(x.float()),
    "in NumPy": lambda x: x / (1 + np.exp(-x)),
}


@pytest.mark.parametrize("reference", REFERENCES)
@pytest.mark.parametrize("name", ["right", "output", "gradient"])
def test_half_precision_alone_is_compared_with_a_reference_in_higher_precision(name, reference):
    # Far less than what the rounding of a single call hides.
    output, gradient = (1.02 if name == wrong else 1.0 for wrong in ("output", "gradient"))
    function = _half_only(
        lambda x: (output * swish(x.float())).to(x.dtype),
        lambda g, x: (gradient * _swish_slope(g.float(), x.float())).to(x.dtype),
    )
    checked = Checked(Declaration(function, *ONE, reference=REFERENCES[reference]), seed=0, shrink=False)
    found = list(lines_of(checked, "FWD-VALUE", "VJP-REF", "FWD-VALUE/averages", "VJP-REF/averages"))
    # NumPy has no gradients to compare with.
    told = {"output": "FWD-VALUE/averages", "gradient": "VJP-REF/averages" if reference != "in NumPy" else ""}
    assert {ndjson.test_of(line) for line in found if line["outcome"] == "fail"} == {told.get(name, "")} - {""}


def test_without_a_reference_they_are_not_verified():
    found = list(Checked(Declaration(_half_only(swish, _swish_slope), *ONE), seed=0).lines("DBL-CORRECT"))
    assert [v.word for _, v in judged(found, compared=False) if v is not None] == ["not verified"]
