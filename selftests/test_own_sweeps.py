"""Users' Functions that map single entries get every number of a 16-bit dtype: what is wrong at some is found."""

from __future__ import annotations

import re

import numpy as np
import pytest

pytest.importorskip("torch")

import torch
from torch.nn import functional

from autograd_conformance import implementations
from autograd_conformance.harness.check import Declaration
from autograd_conformance.harness.check.discovery import discover
from autograd_conformance.harness.check.extremes import _some
from autograd_conformance.harness.check.sweeping import units
from autograd_conformance.reference.definitions import Array
from autograd_conformance.reference.rounding import PRECISION
from autograd_conformance.selftests import excuse_ops, scripts
from autograd_conformance.selftests.checking import lines_of
from autograd_conformance.selftests.test_own_extremes import ONE, POSITIVE, ROWS, function, opaque
from autograd_conformance.strategies.sweeps import HALF, NUMBERS, numbers
from autograd_conformance.suites.declared import Checked, claims

TORCH = implementations.load("torch")


def lines(declaration, seed=0, *, shrink=False):
    """The results of the tests of every number."""
    checked = Checked(declaration, seed=seed, shrink=shrink)
    return list(lines_of(checked, *(claim.test for claim, _ in claims().values() if claim.variant == "sweep")))


def failures(declaration, seed=0, *, shrink=False):
    found = lines(declaration, seed, shrink=shrink)
    return {line["property"]: line["failure"] for line in found if line["outcome"] == "fail"}


def _of_hardswish(g, _, x):
    return g * torch.where(x < -3, 0, torch.where(x <= 3, x / 3 + 0.5, x / 3))


def _exp_to_six(g, y, x):
    return g * (torch.where(x > 6, y / 2, y) if x.dtype is torch.float16 else y)


def _spoiled(at):
    return lambda g, _, x: 3 * g * torch.where(at(x), torch.nan, 1)


WRONG = {
    "relu6, open above": ("VJP-FD", functional.relu6, lambda g, _, x: g * (x > 0), ONE),
    "clamp at ten, open": ("VJP-FD", lambda x: x.clamp(-10, 10), lambda g, _, x: g * torch.ones_like(x), ONE),
    "hardswish, straight above": ("VJP-FD", functional.hardswish, _of_hardswish, ONE),
    "a threshold of eight": (
        "VJP-FD",
        functional.softplus,
        lambda g, _, x: g * torch.where(x > 8, 0, torch.sigmoid(x)),
        ONE,
    ),
    "log1p up to a thousand": ("VJP-FD", torch.log1p, lambda g, _, x: g / (1 + x) * (x < 1000), POSITIVE),
    "a root whose square overflows": ("VJP-REF", torch.sqrt, lambda g, y, x: 0.5 * g * x / (x * x) * y, POSITIVE),
    "asinh whose fourth power overflows": (
        "VJP-REF",
        torch.asinh,
        lambda g, _, x: g * x.abs() / (x * x * (1 + x * x)).sqrt(),
        ("float[...] nonzero",),
    ),
    "the sign of an output that underflows": (
        "VJP-REF",
        lambda x: functional.leaky_relu(x, 0.01),
        lambda g, y, _: g * torch.where(y < 0, 0.01, 1.0).to(g.dtype),
        ONE,
    ),
    "half of exp above six in float16": ("VJP-REF", torch.exp, _exp_to_six, ONE),
    "a root whose cube overflows": (
        "VJP-FINITE",
        torch.sqrt,
        lambda g, y, x: 0.5 * g * y * (x * x) / (x * x * x),
        POSITIVE,
    ),
    "rsqrt whose cube overflows": (
        "VJP-FINITE",
        torch.rsqrt,
        lambda g, y, x: -0.5 * g * y * (x * x) / (x * x * x),
        POSITIVE,
    ),
    "atan whose fourth power overflows": (
        "VJP-FINITE",
        torch.atan,
        lambda g, _, x: g * x * x / (x * x + x**4),
        ("float[...] nonzero",),
    ),
    "a guard in forward alone": (
        "VJP-FD",
        lambda x: torch.sinc((x - 7) / torch.pi),
        lambda g, _, x: g * (torch.cos(x - 7) / (x - 7) - torch.sin(x - 7) / (x - 7) ** 2),
        ONE,
    ),
    "NaN at negative zero": ("VJP-FINITE", lambda x: 3 * x, _spoiled(lambda x: 1 / x == -torch.inf), ONE),
    "NaN at one number": ("VJP-FINITE", lambda x: 3 * x, _spoiled(lambda x: x == 1234), ONE),
    "NaN below the normal numbers": (
        "VJP-FINITE",
        lambda x: 3 * x,
        _spoiled(lambda x: (x != 0) & (x.abs() < torch.finfo(x.dtype).tiny)),
        ONE,
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_at_some_numbers_is_found(name):
    property_id, forward, gradient, arguments = WRONG[name]
    found = failures(Declaration(function(forward, gradient), *arguments))
    assert property_id in found
    assert "specials=((0, " in found[property_id]["call"]


def test_the_message_and_the_script_have_the_number(tmp_path):
    _, forward, gradient, arguments = WRONG["a root whose cube overflows"]
    with scripts.importable(Declaration(function(forward, gradient), *arguments), tmp_path) as declaration:
        failure = failures(declaration, shrink=True)["VJP-FINITE"]
    assert failure["hint"].startswith("the entry is 111.438 in float16, and the outputs are finite here")
    assert "torch.float16" in failure["script"]


def _wide(x):
    return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x


def _inside(f):
    """A map that computes in single precision, as kernels do."""
    return lambda *given: f(*map(_wide, given)).to(given[-1].dtype)


def _truncated(y, x):
    """The number next to zero of those that a 16-bit dtype has on both sides."""
    near = y.to(x.dtype)
    if near.dtype not in (torch.float16, torch.bfloat16):
        return near
    bits = near.view(torch.int16)
    return torch.where(near.double().abs() > y.double().abs(), bits - 1, bits).view(near.dtype)


RIGHT = {
    "relu6": (function(functional.relu6, lambda g, _, x: g * ((x > 0) & (x < 6))), ONE),
    "a fraction": (lambda x: x % 1.0, ONE),
    "steps": (lambda x: torch.round(3 * x) / 3, ONE),
    "a large phase": (function(torch.sin, lambda g, _, x: g * x.cos()), ONE),
    "tan": (function(torch.tan, lambda g, y, _: g * (1 + y * y)), ONE),
    "a threshold": (
        function(functional.softplus, lambda g, _, x: g * torch.where(x > 20, 1, torch.sigmoid(x))),
        ONE,
    ),
    "sigmoid from its output": (function(torch.sigmoid, lambda g, y, _: g * y * (1 - y)), ONE),
    "tanh from its output": (function(torch.tanh, lambda g, y, _: g * (1 - y * y)), ONE),
    "logit": (
        function(lambda x: torch.log(x) - torch.log1p(-x), lambda g, _, x: g / (x * (1 - x))),
        ("float[n] unit",),
    ),
    "acosh": (torch.acosh, ("float[n](1..5)",)),
    "a cube root": (
        function(lambda x: x.sign() * x.abs() ** (1 / 3), lambda g, _, x: g / (3 * x.abs() ** (2 / 3))),
        ("float[n] nonzero",),
    ),
    "one more than needed": (lambda x: x.exp() - 1, ONE),
    "a thousand there and back": (lambda x: (x + 1000) - 1000, ONE),
    "powers": (lambda x, n: x**n, (*ONE, "2 | 3 | 5")),
    "large factor": (function(lambda x: x * 1e5, lambda g, *_: g * 1e5), ONE),
    "small factor": (function(lambda x: x * 1e-6, lambda g, *_: g * 1e-6), ONE),
    "computed in single precision": (
        function(_inside(torch.tanh), _inside(lambda g, _, x: g * (1 - x.tanh() ** 2))),
        ONE,
    ),
    "truncating": (
        function(
            lambda x: _truncated(_wide(x).atan(), x),
            lambda g, _, x: _truncated(_wide(g) / (1 + _wide(x) ** 2), x),
        ),
        ONE,
    ),
    "silu with NumPy": (
        function(
            opaque(lambda x: x / (1 + np.exp(-x))),
            lambda g, _, x: g * torch.sigmoid(x) * (1 + x * (1 - torch.sigmoid(x))),
        ),
        ONE,
    ),
    "smooth step": (
        function(
            lambda x: x.clamp(0, 1) ** 2 * (3 - 2 * x.clamp(0, 1)),
            lambda g, _, x: g * 6 * x.clamp(0, 1) * (1 - x.clamp(0, 1)),
        ),
        ONE,
    ),
}


@pytest.mark.parametrize("name", RIGHT)
def test_rounding_and_overflow_in_the_formula_are_accepted(name):
    f, arguments = RIGHT[name]
    found = lines(Declaration(f, *arguments))
    assert {line["outcome"] for line in found} == {"pass"}
    assert {line["property"] for line in found} == {"VJP-FINITE", "VJP-REF", "VJP-FD"}


def _centred(x):
    return x - x.mean(-1, keepdim=True)


@pytest.mark.parametrize(
    ("f", "arguments"),
    [
        (torch.softmax, (*ROWS, "-1")),
        (torch.cumsum, ("float[n]", "0")),
        (_centred, ROWS),
        (lambda x: x * torch.arange(x.shape[-1]), ROWS),
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


@pytest.mark.parametrize("function", [excuse_ops.HugeRefused, excuse_ops.LargeRefused])
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
    found = failures(Declaration(excuse_ops.LargeRefusedWrongBelow, *ONE), seed=seed)
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
