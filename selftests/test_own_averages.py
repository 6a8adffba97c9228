"""Systematic errors of users' Functions in half precision are found; rounding, and even truncation, is accepted."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("torch")

import torch

from autograd_conformance.harness.check import Declaration
from autograd_conformance.harness.check.verdicts import judged
from autograd_conformance.harness.reports import ndjson
from autograd_conformance.reference.averages import CALLS, systematic
from autograd_conformance.reference.rounding import PRECISION, round_to
from autograd_conformance.selftests.checking import DRAWS, lines_of
from autograd_conformance.suites.declared import Checked, claims

HALF = {"float16": torch.float16, "bfloat16": torch.bfloat16}
ONE, ROWS = "float[...]", "float[b,n]"


def lines(declaration, seed=0, profile="gate"):
    """The results of the tests of averages."""
    checked = Checked(declaration, seed=seed, profile=profile, shrink=False)
    return list(lines_of(checked, *(claim.test for claim, _ in claims().values() if claim.variant == "averages")))


def _function(forward, gradient):
    """A Function whose backward is ``gradient(g, y, x)``."""

    def run(ctx, x):
        y = forward(x)
        ctx.save_for_backward(y, x)
        return y

    methods = {"forward": run, "backward": lambda ctx, g: gradient(g, *ctx.saved_tensors)}
    return type("Averaged", (torch.autograd.Function,), {name: staticmethod(f) for name, f in methods.items()})


def _softmax(g, y, _):
    return y * (g - (g * y).sum(-1, keepdim=True))


BASES = {
    "square": (lambda x: x * x, lambda g, _, x: 2 * g * x, ONE),
    "tanh": (torch.tanh, lambda g, y, _: g * (1 - y * y), ONE),
    "softmax": (lambda x: x.softmax(-1), _softmax, ROWS),
}


def _last(value):
    changed = value.clone()
    if changed.ndim:
        changed[-1] *= 1.1
    return changed


FAULTS = {
    "bfloat16, 2 per cent more": ("bfloat16", lambda v: (v.double() * 1.02).to(v.dtype)),
    "bfloat16, 2 per cent less": ("bfloat16", lambda v: (v.double() * 0.98).to(v.dtype)),
    "float16, 0.3 per cent more": ("float16", lambda v: (v.double() * 1.003).to(v.dtype)),
    "bfloat16, a bias": ("bfloat16", lambda v: v + 0.1),
    "float16, a bias": ("float16", lambda v: v + 0.01),
    "bfloat16, the last row": ("bfloat16", _last),
    "float16, the last row": ("float16", _last),
    "bfloat16, positive ones": ("bfloat16", lambda v: torch.where(v > 0, v * 1.05, v)),
}


def _in(dtype, change, compute):
    def changed(*given):
        found = compute(*given)
        return change(found) if found.dtype is HALF[dtype] else found

    return changed


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_systematic_error_of_a_gradient_is_found(fault, base):
    (dtype, change), (forward, gradient, argument) = FAULTS[fault], BASES[base]
    found = lines(Declaration(_function(forward, _in(dtype, change, gradient)), argument))
    assert [line["property"] for line in found if line["outcome"] == "fail"] == ["VJP-REF"]
    assert "on average over 32 calls" in next(line for line in found if line["outcome"] == "fail")["failure"]["what"]


@pytest.mark.parametrize("fault", FAULTS)
def test_a_systematic_error_of_an_output_is_found(fault):
    dtype, change = FAULTS[fault]
    found = lines(Declaration(_function(_in(dtype, change, torch.sin), lambda g, _, x: g * x.cos()), ONE))
    assert [line["property"] for line in found if line["outcome"] == "fail"] == ["FWD-VALUE"]


class Truncated:
    """Numbers with which every operation is rounded towards zero."""

    def __init__(self, value, dtype):
        if dtype not in HALF.values():
            self.value = value
        else:
            near = value.to(dtype)
            bits = near.view(torch.int16)
            self.value = torch.where(near.double().abs() > value.abs(), bits - 1, bits).view(dtype).double()
        self.dtype = dtype

    def of(self, value):
        return Truncated(value, self.dtype)

    def __add__(self, other):
        return self.of(self.value + _value(other))

    def __sub__(self, other):
        return self.of(self.value - _value(other))

    def __rsub__(self, other):
        return self.of(_value(other) - self.value)

    def __mul__(self, other):
        return self.of(self.value * _value(other))

    def __truediv__(self, other):
        return self.of(self.value / _value(other))

    __radd__, __rmul__ = __add__, __mul__

    def sum(self):
        total = self.of(self.value[..., :1])
        for number in range(1, self.value.shape[-1]):
            total = total + self.of(self.value[..., number : number + 1])
        return total


def _value(x):
    return x.value if isinstance(x, Truncated) else x


def _truncating(forward, gradient):
    def load(x):
        return Truncated(x.double() if x.dtype in HALF.values() else x, x.dtype)

    def back(g, y, x):
        return gradient(load(g), load(y), load(x)).value.to(x.dtype)

    return _function(lambda x: forward(load(x)).value.to(x.dtype), back)


def _power(x, n):
    found = x
    for _ in range(n - 1):
        found = found * x
    return found


def _exp(x):
    return x.of(x.value.exp())


def _exp_shares(x):
    return _exp(x) / _exp(x).sum()


def _tanh(x):
    return x.of(x.value.tanh())


TRUNCATING = {
    "square": (lambda x: x * x, lambda g, _, x: 2 * (g * x), ONE),
    "tanh": (_tanh, lambda g, y, _: g * (1 - y * y), ONE),
    "fifth power": (lambda x: _power(x, 5), lambda g, _, x: 5 * (g * _power(x, 4)), ONE),
    "seventh power": (lambda x: _power(x, 7), lambda g, _, x: 7 * (g * _power(x, 6)), ONE),
    "softmax": (_exp_shares, lambda g, y, _: y * (g - (g * y).sum()), ROWS),
    "mean of positive": (
        lambda x: x.sum() / x.value.shape[-1],
        lambda g, _, x: g / x.value.shape[-1] + 0 * x,
        "float[n] positive",
    ),
}
RIGHT = {
    "gelu, written out": (lambda x: 0.5 * x * (1 + torch.tanh(0.79788456 * (x + 0.044715 * x**3))), ONE),
    "logarithm of a sum": (lambda x: x.exp().sum(-1).log(), ROWS),
    "one more than needed": (lambda x: x.exp() - 1, ONE),
    "large phase": (lambda x: torch.sin(50 * x), ONE),
    "a fraction, which jumps": (lambda x: (10 * x) % 1.0, ONE),
    "steps": (lambda x: torch.round(3 * x) / 3, ONE),
    "rounded constants": (lambda x: x * x.new_tensor(0.1) * x.new_tensor(0.3) * x.new_tensor(0.7), ONE),
    "the largest": (lambda x: x.topk(1, -1).values, ROWS),
    "sums in half precision": (lambda x: sum(x.unbind(-1)), ROWS),
}


@pytest.mark.parametrize(("profile", "seed"), DRAWS)
@pytest.mark.parametrize("name", TRUNCATING)
def test_truncation_is_accepted(name, profile, seed):
    forward, gradient, argument = TRUNCATING[name]
    found = lines(Declaration(_truncating(forward, gradient), argument), seed, profile)
    assert {line["outcome"] for line in found} == {"pass"}


@pytest.mark.parametrize(("profile", "seed"), DRAWS)
@pytest.mark.parametrize("name", RIGHT)
def test_rounding_is_accepted(name, profile, seed):
    function, argument = RIGHT[name]
    assert {line["outcome"] for line in lines(Declaration(function, argument), seed, profile)} == {"pass"}


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

    methods = {"forward": run, "backward": lambda ctx, g: gradient(g, *ctx.saved_tensors)}
    return type("HalfOnly", (torch.autograd.Function,), {name: staticmethod(f) for name, f in methods.items()})


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
    "swish": (swish, _swish_slope, ONE, {"pass"}),
    "softmax": (lambda x: x.softmax(-1), _softmax_slope, ROWS, {"pass"}),
    "exp, computed in single precision": (
        torch.exp, lambda g, x: (g.float() * x.float().exp()).to(x.dtype), ONE, {"pass"},
    ),
    "twice": (lambda x: x * 2, lambda g, _: g * 2, ONE, {"pass"}),
    "detached": (swish, lambda g, x: _swish_slope(g, x.detach()), ONE, {"silently detached"}),
    "partly detached": (swish, lambda g, x: g * (x.sigmoid() + (swish(x) * (-x).sigmoid()).detach()), ONE, {"wrong"}),
    "twice as steep": (swish, lambda g, x: _swish_slope(g, _Doubled.apply(x)), ONE, {"wrong"}),
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


def test_without_a_reference_they_are_not_verified():
    found = list(Checked(Declaration(_half_only(swish, _swish_slope), ONE), seed=0).lines("DBL-CORRECT"))
    assert [v.word for _, v in judged(found, compared=False) if v is not None] == ["not verified"]


def _root_mean_square(x):
    return x * (x.square().mean(-1, keepdim=True) + 1e-5).rsqrt()


def _of_root_mean_square(g, y, x):
    rate = (x.square().mean(-1, keepdim=True) + 1e-5).rsqrt()
    return rate * (g - y * (g * y).mean(-1, keepdim=True))


def _through_double(x):
    return torch.from_numpy(_root_mean_square(x.detach().double()).numpy()).to(x.dtype)


@pytest.mark.parametrize(("profile", "seed"), DRAWS)
@pytest.mark.parametrize("forward", [_root_mean_square, _through_double], ids=["known", "unknown"])
def test_what_is_left_of_terms_that_cancel_is_no_systematic_error(forward, profile, seed):
    """With one entry in a row, nothing but the epsilon keeps the gradient from being 0."""
    declaration = Declaration(_function(forward, _of_root_mean_square), ROWS, sizes={"n": (1, 2)}, once=True)
    assert [line["id"] for line in lines(declaration, seed, profile) if line["outcome"] == "fail"] == []
