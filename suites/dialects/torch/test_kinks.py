"""The gradients of PyTorch's own functions at their kinks."""

import math

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812 - the usual name
from hypothesis import strategies as st

from autograd_conformance.harness.testing.marks import keeps

# Elementwise functions, with their slopes at some points, including kinks.
SLOPES = {
    "relu": (lambda x: torch.relu(x), {-2.0: 0, 0.0: 0, 2.0: 1}),
    "relu6": (lambda x: F.relu6(x), {-2.0: 0, 0.0: 0, 2.0: 1, 6.0: 0, 7.0: 0}),
    "abs": (lambda x: torch.abs(x), {-2.0: -1, 0.0: 0, 2.0: 1}),
    "minus abs": (lambda x: -torch.abs(x), {-2.0: 1, 0.0: 0, 2.0: -1}),
    "leaky_relu": (lambda x: F.leaky_relu(x, 0.25), {-2.0: 0.25, 0.0: 0.25, 2.0: 1}),
    "softshrink": (lambda x: F.softshrink(x, 0.5), {-2.0: 1, -0.5: 0, 0.0: 0, 0.5: 0, 2.0: 1}),
    "hardtanh": (lambda x: F.hardtanh(x), {-2.0: 0, -1.0: 0, 0.5: 1, 1.0: 0, 2.0: 0}),
    "threshold": (lambda x: F.threshold(x, 0.0, 0.0), {-2.0: 0, 0.0: 0, 2.0: 1}),
    "sqrt": (lambda x: torch.sqrt(x), {0.0: math.inf, 4.0: 0.25, 0.25: 1}),
    "pow": (lambda x: x**0.5, {0.0: math.inf, 4.0: 0.25, 0.25: 1}),
    "asin": (lambda x: torch.asin(x), {-1.0: math.inf, 0.0: 1, 1.0: math.inf}),
    "acos": (lambda x: torch.acos(x), {-1.0: -math.inf, 0.0: -1, 1.0: -math.inf}),
    "l1_loss": (lambda x: F.l1_loss(x, torch.ones_like(x), reduction="none"), {0.0: -1, 1.0: 0, 2.0: 1}),
}
CLAMPS = {
    "clamp": (lambda x: torch.clamp(x, -1.0, 1.0), {-2.0: 0, -1.0: 0, 0.5: 1, 1.0: 0, 2.0: 0}),
    "clamp_min": (lambda x: torch.clamp_min(x, 0.0), {-2.0: 0, 0.0: 0, 2.0: 1}),
    "clamp_max": (lambda x: torch.clamp_max(x, 0.0), {-2.0: 1, 0.0: 0, 2.0: 0}),
}
FACTORS = (1.0, -2.0, 3.0)


def _assert_slopes(subject, data, functions):
    f, slopes = functions[subject.draw(data, functions, "function")]
    points = subject.draw(data, st.permutations(sorted(slopes)), "points")
    factors = st.lists(st.sampled_from(FACTORS), min_size=len(points), max_size=len(points))
    cotangents = np.array(subject.draw(data, factors, "cotangents"))
    dtype = subject.draw(data, ("float64", "float32"), "dtype")
    x = subject.tensor(points, dtype).requires_grad_()
    (found,) = torch.autograd.grad(f(x), x, subject.tensor(cotangents, dtype))
    expected = cotangents * [slopes[point] for point in points]
    subject.assert_same("gradient", got=found, expected=expected)


@keeps("KINK-01", examples=3)
def test_the_least_slope_is_taken_at_a_kink(subject, data):
    """The slope at a kink is that of least magnitude, and infinite where a function begins with such a slope."""
    _assert_slopes(subject, data, SLOPES)


@keeps("KINK-01", variant="clamp")
def test_the_least_slope_is_taken_where_clamp_starts(subject, data):
    """clamp, clamp_min and clamp_max have slope 0 at their bounds."""
    _assert_slopes(subject, data, CLAMPS)


# Functions of two tensors: 1 if they choose the larger entry, -1 for the smaller one.
LARGER = {"maximum": 1, "minimum": -1, "max": 1, "min": -1}
IGNORING_NAN = {"fmax": 1, "fmin": -1}


def _chooser(functions, name):
    """The function of this name, and which entry it chooses."""
    found = functions[name]
    return found if isinstance(found, tuple) else (getattr(torch, name), found)


def _assert_shares(subject, data, functions):
    f, sign = _chooser(functions, subject.draw(data, functions, "function"))
    entries = st.lists(st.tuples(*[st.sampled_from((0.0, 1.0))] * 2, st.sampled_from(FACTORS)), min_size=1, max_size=4)
    a, b, cotangents = np.transpose(subject.draw(data, entries, "two values and a cotangent of each entry"))
    number = subject.draw(data, (False, True), "the second tensor has no dimension")
    other = b[0] if number else b
    tensors = [x.requires_grad_() for x in subject.tensors([a, np.array(other)])]
    found = torch.autograd.grad(f(*tensors), tensors, subject.tensor(cotangents))
    share = (1 + np.sign(a - other) * sign) / 2
    rest = cotangents * (1 - share)
    subject.assert_all_same("gradient", got=found, expected=[cotangents * share, rest.sum() if number else rest])


@keeps("KINK-01", variant="ties")
def test_a_tie_is_shared_evenly(subject, data):
    """maximum, minimum, max and min of two tensors share the gradient of a tie."""
    _assert_shares(subject, data, LARGER)


@keeps("KINK-01", variant="fmax")
def test_a_tie_of_fmax_is_shared_evenly(subject, data):
    """fmax and fmin share the gradient of a tie."""
    _assert_shares(subject, data, IGNORING_NAN)


# Functions of two tensors that clamp the first: 1 if the larger entry is the result, -1 if the smaller one is.
BOUNDED = {
    "clamp": (lambda x, bound: torch.clamp(x, bound), 1),
    "clamp from above": (lambda x, bound: torch.clamp(x, max=bound), -1),
    "clamp between": (lambda x, bound: torch.clamp(x, bound, bound + 2), 1),
    "clamp_min": (lambda x, bound: torch.clamp_min(x, bound), 1),
    "clamp_max": (lambda x, bound: torch.clamp_max(x, bound), -1),
    "clamp_ of a copy": (lambda x, bound: torch.clone(x).clamp_(bound), 1),
}


@keeps("KINK-01", variant="bounds")
def test_a_tie_with_a_bound_is_shared_evenly(subject, data):
    """Where the bound of clamp, clamp_min or clamp_max is a tensor, it and the input share the gradient of a tie."""
    _assert_shares(subject, data, BOUNDED)


def _assert_tangents(subject, data, functions):
    f, sign = _chooser(functions, subject.draw(data, functions, "function"))
    values = st.tuples(*[st.sampled_from((0.0, 1.0))] * 2, *[st.sampled_from(FACTORS)] * 2)
    a, b, *tangents = np.transpose(
        subject.draw(data, st.lists(values, min_size=1, max_size=4), "two values and two tangents of each entry")
    )
    _, found = torch.func.jvp(f, subject.tensors([a, b]), subject.tensors(tangents))
    share = (1 + np.sign(a - b) * sign) / 2
    subject.assert_same("tangent", got=found, expected=tangents[0] * share + tangents[1] * (1 - share))


@keeps("KINK-01", variant="tangents", needs="jvp")
def test_both_tangents_count_in_a_tie(subject, data):
    """Where both inputs of maximum, minimum, max or min tie, the tangent is half of the sum of theirs."""
    _assert_tangents(subject, data, LARGER)


@keeps("KINK-01", variant="bound-tangents", needs="jvp")
def test_both_tangents_count_in_a_tie_with_a_bound(subject, data):
    """Where both inputs of fmax, fmin or clamp tie, the tangent is half of the sum of theirs."""
    _assert_tangents(subject, data, {**IGNORING_NAN, **BOUNDED})


REDUCTIONS = {"amax": max, "amin": min, "max": max, "min": min}


@keeps("KINK-01", variant="reductions")
def test_all_that_tie_share_evenly(subject, data):
    """amax, amin, max and min of one tensor share the gradient among all ties."""
    name = subject.draw(data, REDUCTIONS, "function")
    f, chosen = getattr(torch, name), REDUCTIONS[name]
    values = subject.draw(data, st.lists(st.sampled_from((0.0, 1.0)), min_size=1, max_size=4), "values")
    x = subject.tensor(values).requires_grad_()
    # Twelve can be divided by the number of ties, which is at most four.
    (found,) = torch.autograd.grad(f(x), x, subject.tensor(12.0))
    ties = np.equal(values, chosen(values))
    subject.assert_same("gradient", got=found, expected=12.0 * ties / ties.sum())


@keeps("KINK-01", variant="norms")
def test_a_norm_has_gradient_zero_at_zero(subject, data):
    """The gradient of a vector norm at zero is zero, for any order."""
    order = subject.draw(data, (1, 2, 3, math.inf), "order of the norm")
    shape = subject.draw(data, ((1,), (3,), (2, 2)), "shape")
    x = subject.tensor(np.zeros(shape)).requires_grad_()
    (found,) = torch.autograd.grad(torch.linalg.vector_norm(x, order), x, subject.tensor(2.0))
    subject.assert_same("gradient", got=found, expected=np.zeros(shape))


@keeps("KINK-02", variant="built-in")
def test_a_nan_cotangent_does_not_reach_flat_parts(subject, data):
    """Where a function is flat, a NaN cotangent gives 0."""
    functions = {name: SLOPES[name] for name in ("relu", "relu6", "hardtanh", "threshold", "softshrink")}
    f, slopes = functions[subject.draw(data, functions, "function")]
    points = st.sampled_from(sorted(point for point in slopes if abs(point) not in (0.0, 0.5, 1.0, 6.0)))
    factors = st.sampled_from((1.0, math.nan))
    entries = st.lists(st.tuples(points, factors), min_size=1, max_size=4)
    x, g = np.transpose(subject.draw(data, entries, "point and cotangent of each entry"))
    primal = subject.tensor(x).requires_grad_()
    (found,) = torch.autograd.grad(f(primal), primal, subject.tensor(g))
    expected = np.where([slopes[point] == 0 for point in x], 0.0, g)
    subject.assert_same("gradient", got=found, expected=expected)


def _assert_random(subject, data, functions):
    """The gradient of a random result is an error, whatever is computed from it."""
    name = subject.draw(data, functions, "function")
    after = subject.draw(data, (1.0, -2.0), "factor of the result")
    shape = subject.draw(data, ((2,), (1, 3)), "shape")
    x = subject.tensor(np.full(shape, 0.5)).requires_grad_()

    y = subject.assert_accepted(lambda: functions[name](x), f"a draw of {name}") * after
    pull = lambda: torch.autograd.grad(y, x, torch.ones_like(y))  # noqa: E731
    subject.assert_raises(RuntimeError, pull, f"the gradient of {name}")


# Random functions of what a tensor is like, or of probabilities that choose an index.
RANDOM = {
    "rand_like": lambda x: torch.rand_like(x),
    "randn_like": lambda x: torch.randn_like(x),
    "randint_like": lambda x: torch.randint_like(x, 3),
    "multinomial": lambda p: torch.multinomial(p, 1),
    "binomial": lambda p: torch.binomial(torch.ones_like(p), p),
}


@keeps("KINK-03", examples=0.4)
def test_random_results_have_no_gradient(subject, data):
    """A pass through what is drawn at random raises."""
    _assert_random(subject, data, RANDOM)


SAMPLES = {
    "bernoulli": lambda p: torch.bernoulli(p),
    "poisson": lambda rate: torch.poisson(rate),
    "normal": lambda mean: torch.normal(mean, 1.0),
    "normal of a deviation": lambda deviation: torch.normal(0.0, deviation),
}


@keeps("KINK-03", variant="samples", examples=0.4)
def test_samples_have_no_gradient_for_their_parameters(subject, data):
    """A pass to the parameters of what is drawn from a distribution raises."""
    _assert_random(subject, data, SAMPLES)
