"""Users' Functions at large and small values: what built-in operations of the same formula do is right."""

from __future__ import annotations

import re

import numpy as np
import pytest

pytest.importorskip("torch")

import torch
from torch.nn import functional

from autograd_conformance.benchmarks.right.signal import Biquad
from autograd_conformance.harness.check import Declaration
from autograd_conformance.harness.outcomes import Broken
from autograd_conformance.selftests.checking import DRAWS
from autograd_conformance.strategies.calls import Call, Cotangent, Tensor
from autograd_conformance.suites.declared import Checked, claims

ONE, ROWS, POSITIVE = ("float[...]",), ("float[b,n]",), ("float[n] positive",)
TWO_ROWS = (*ROWS, *ROWS)


def failures(declaration, seed=0, *, profile="gate", shrink=False):
    """The failures of the tests of VJP-FINITE."""
    lines = Checked(declaration, profile=profile, seed=seed, shrink=shrink).lines("VJP-FINITE")
    return [line["failure"] for line in lines if line["outcome"] not in ("pass", "vacuous")]


def function(forward, gradients):
    """A Function whose backward is ``gradients(g, y, *inputs)``."""

    def run(ctx, *inputs):
        y = forward(*inputs)
        ctx.save_for_backward(y, *inputs)
        return y

    methods = {"forward": run, "backward": lambda ctx, g: gradients(g, *ctx.saved_tensors)}
    return type("Extreme", (torch.autograd.Function,), {name: staticmethod(f) for name, f in methods.items()})


def opaque(compute):
    """A forward of which no operation is seen: it computes with NumPy."""

    def forward(x):
        wide = torch.float32 if x.dtype is torch.bfloat16 else x.dtype
        with np.errstate(all="ignore"):
            return torch.as_tensor(compute(x.detach().to(wide).numpy())).to(x.dtype)

    return forward


def column(y):
    return y.unsqueeze(-1)


def _variance(x):
    return x.var(-1, unbiased=False, keepdim=True) + 0.1


def _normalizing(g, y, x):
    return (g - g.mean(-1, keepdim=True) - y * (g * y).mean(-1, keepdim=True)) / _variance(x).sqrt()


def _safe(y):
    return torch.where(y == 0, 1, y)


def _naive(x):
    return 1 / (1 + torch.exp(-x))


def _cosine(x, y):
    return (x * y).sum(-1) / ((x * x).sum(-1).sqrt() * (y * y).sum(-1).sqrt() + 1e-3)


def _product_of_sums(g, _, x, y):
    return column(g * y.sum(-1)).expand_as(x), column(g * x.sum(-1)).expand_as(y)


# Values inside overflow or underflow, and autograd of built-in operations gives NaN for some of them.
RIGHT = {
    "product of sums": (function(lambda x, y: x.sum(-1) * y.sum(-1), _product_of_sums), TWO_ROWS),
    "ratio of products of sums": (
        lambda x, y: x.sum(-1) * y.sum(-1) / (1 + (x * x).sum(-1) * (y * y).sum(-1)),
        TWO_ROWS,
    ),
    "sigmoid, written out": (_naive, ONE),
    "sigmoid from its output": (function(_naive, lambda g, y, _: g * y * (1 - y)), ONE),
    "gelu, written out": (lambda x: 0.5 * x * (1 + torch.tanh(0.79788456 * (x + 0.044715 * x**3))), ONE),
    "time step": (lambda x: torch.exp(-x * (1 / (1 + x * x)) ** 2), ONE),
    "time step and its derivative": (
        function(lambda x: x / (1 + x * x) ** 2, lambda g, _, x: g * (1 - 3 * x * x) / (1 + x * x) ** 3),
        ONE,
    ),
    "norm, written out": (lambda x: (x * x).sum(-1).sqrt(), ROWS),
    "norm with NumPy": (
        function(opaque(lambda x: np.sqrt((x * x).sum(-1))), lambda g, y, x: column(g / _safe(y)) * x),
        ROWS,
    ),
    "rational": (function(lambda x: x * x / (1 + x * x), lambda g, _, x: 2 * g * x / (1 + x * x) ** 2), ONE),
    "softplus, written out": (lambda x: torch.log(1 + torch.exp(x)), ONE),
    "softmax, written out": (lambda x: x.exp() / x.exp().sum(-1, keepdim=True), ROWS),
    "cosine": (_cosine, TWO_ROWS),
    "normalize": (function(lambda x: (x - x.mean(-1, keepdim=True)) / _variance(x).sqrt(), _normalizing), ROWS),
    "bell": (function(lambda x: torch.exp(-x * x / 2), lambda g, y, x: -g * x * y), ONE),
    "tenth power": (function(lambda x: x**10, lambda g, _, x: 10 * g * x**9), ONE),
    "root": (function(torch.sqrt, lambda g, y, _: g / (2 * y)), POSITIVE),
    "inverse cube": (function(lambda x: x**-3.0, lambda g, y, x: -3 * g * y / x), POSITIVE),
}


def _of_exponentials(g, _, x):
    return column(g) * x.exp() / x.exp().sum(-1, keepdim=True)


def _of_shares(g, _, x):
    y = x.exp() / x.exp().sum(-1, keepdim=True)
    return y * (g - (g * y).sum(-1, keepdim=True))


def _of_sigmoid(g, _, x):
    return g * torch.exp(-x) / (1 + torch.exp(-x)) ** 2


def _log_cosh(x):
    return functional.softplus(-2 * x) + x - 0.6931471805599453


WRONG = {
    "logsumexp": (function(lambda x: torch.logsumexp(x, -1), _of_exponentials), ROWS),
    "softmax": (function(lambda x: torch.softmax(x, -1), _of_shares), ROWS),
    "sigmoid": (function(torch.sigmoid, _of_sigmoid), ONE),
    "sigmoid with NumPy": (function(opaque(lambda x: 1 / (1 + np.exp(-x))), _of_sigmoid), ONE),
    "softplus": (function(functional.softplus, lambda g, _, x: g * x.exp() / (1 + x.exp())), ONE),
    "silu": (
        function(functional.silu, lambda g, _, x: g * (1 + (1 + x) * (-x).exp()) / (1 + (-x).exp()) ** 2),
        ONE,
    ),
    "log cosh": (function(_log_cosh, lambda g, _, x: g * torch.sinh(x) / torch.cosh(x)), ONE),
    "three times, with NumPy": (function(opaque(lambda x: 3 * x), lambda g, _, x: 3 * g * x / x), ONE),
    "tanh": (function(torch.tanh, lambda g, _, x: g * 4 * (2 * x).exp() / ((2 * x).exp() + 1) ** 2), ONE),
}


@pytest.mark.parametrize(("profile", "seed"), DRAWS)
@pytest.mark.parametrize("name", RIGHT)
def test_what_built_in_operations_do_is_accepted(name, profile, seed):
    f, arguments = RIGHT[name]
    assert failures(Declaration(f, *arguments), seed, profile=profile) == []


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


@pytest.mark.parametrize("name", WRONG)
def test_an_overflow_in_backward_alone_is_found(name):
    f, arguments = WRONG[name]
    (failure, *_) = failures(Declaration(f, *arguments))
    assert failure["got"] in ("nan", "inf", "-inf")
    assert failure["what"].startswith("gradient of argument 0")


def test_the_message_names_the_value_and_the_dtype():
    f, arguments = WRONG["sigmoid"]
    (failure, *_) = failures(Declaration(f, *arguments), shrink=True)
    value, dtype = re.match(r"the entry is (\S+) in (\w+), and the outputs are finite here", failure["hint"]).groups()
    assert float(re.search(r"specials=\(\(\d+, ([-+.e\d]+)", failure["call"])[1]) == pytest.approx(
        float(value), rel=1e-5
    )
    assert dtype == "float64" or f"dtype='{dtype}'" in failure["call"]


def test_a_reference_is_the_formula():
    naive = function(_naive, _of_sigmoid)
    assert failures(Declaration(naive, *ONE)) == []
    (failure, *_) = failures(Declaration(naive, *ONE, reference=torch.sigmoid))
    assert failure["got"] == "nan"


class WithContext(torch.autograd.Function):
    """A sigmoid with setup_context, whose gradient is NaN far from 0."""

    @staticmethod
    def forward(x):
        return torch.sigmoid(x)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(output, *inputs)

    @staticmethod
    def backward(ctx, g):
        return _of_sigmoid(g, *ctx.saved_tensors)


def test_what_a_callable_wraps_is_no_built_in_operation():
    assert failures(Declaration(WithContext, *ONE))
    assert failures(Declaration(lambda x: 2 * WithContext.apply(x), *ONE))


def _through_numpy(x):
    return torch.from_numpy(np.log(x.detach().numpy()))


@pytest.mark.parametrize(("forward", "known"), [(torch.log, True), (_through_numpy, False)])
def test_tiny_numbers_in_double_precision_are_judged_or_counted(forward, known):
    wrong = function(forward, lambda g, _, x: g * x / (x * x))
    declaration = Declaration(wrong, *POSITIVE, dtypes="float64")
    call = Call("Extreme", (Tensor((1,), requires_grad=True, specials=((0, 1e-300),)),), (Cotangent(),))
    subject = next(iter(Checked(declaration).subjects(claims()["VJP_FINITE"][0])))
    example = subject.example(call)
    gradients = example.run()[1]
    if known:
        with pytest.raises(Broken, match="expected about 1e\\+300"):
            subject.assert_finite(example, gradients, given=True)
    else:
        subject.assert_finite(example, gradients, given=True)
        assert (subject.record.checks, subject.record.inconclusive) == (1, 1)
