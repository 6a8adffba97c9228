"""The finite-difference ladder against functions whose gradients are known exactly."""

import math
from typing import Any

import numpy as np
import pytest

from autograd_conformance.reference.ladder import (
    FINER,
    KINK,
    LOOSE,
    NOT_FINITE,
    TOO_FEW,
    Estimate,
    Verdict,
    diagnose,
    directions,
    inner,
    judge,
    slope,
)
from autograd_conformance.selftests.oracles.analytic import FUNCTIONS, Analytic, weights_for

BY_NAME = {function.name: function for function in FUNCTIONS}
SIZES = (1, 2, 5, 20)


def one(f: Any) -> Any:
    """A function of one array as the ladder takes it."""
    return lambda points: (f(points[0]),)


def draw(function: Analytic, n: int, seed: int) -> tuple[Any, Any, Any, Any]:
    """Points, cotangents, exact gradients and a direction."""
    generator = np.random.default_rng(seed)
    points = function.sample(generator, n)
    weights = weights_for(function.f(points), generator)
    return points, weights, function.vjp(points, weights), directions(points, seed=seed)


def along(f: Any, x: Any, v: Any = 1.0, u: Any = None) -> Estimate:
    """Slope of a function of one array."""
    points = (np.asarray(x),)
    direction = directions(points, seed=0) if u is None else (np.asarray(u),)
    with np.errstate(all="ignore"):
        shape = np.shape(f(points[0]))
    return slope(one(f), points, direction, (np.broadcast_to(v, shape),))


def test_table_is_long_enough_and_names_are_unique() -> None:
    assert len(BY_NAME) == len(FUNCTIONS) >= 36


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.name)
def test_no_false_alarm(function: Analytic) -> None:
    """144 draws of each function, over 10 000 in all: the exact VJP is never said to be wrong."""
    verdicts = []
    for seed in range(144):
        points, weights, gradients, direction = draw(function, SIZES[seed % len(SIZES)], seed)
        verdicts.append(judge(inner(gradients, direction), slope(function.f, points, direction, weights)))
    refused = verdicts.count(Verdict.INCONCLUSIVE)
    assert verdicts.count(Verdict.DISAGREES) == 0
    if function.refusals == "none":
        assert refused <= 2
    if function.refusals == "kinks" and function.name != "sort, normal":
        assert refused >= 15


@pytest.mark.parametrize("function", [f for f in FUNCTIONS if f.refusals == "none"], ids=lambda f: f.name)
def test_bound_is_small_where_the_function_is_smooth(function: Analytic) -> None:
    for seed in range(20):
        points, weights, gradients, direction = draw(function, 10, seed)
        outputs = function.f(points)
        estimate = slope(function.f, points, direction, weights)
        terms = sum(float(np.sum(np.abs(v) * np.abs(out))) for v, out in zip(weights, outputs, strict=True))
        terms += sum(float(np.sum(np.abs(g * u))) for g, u in zip(gradients, direction, strict=True) if u is not None)
        assert estimate.bound <= max(1e-9 * terms, 1e-13 * sum(float(np.abs(v).sum()) for v in weights))


@pytest.mark.parametrize("n", [1000, 10_000])
@pytest.mark.parametrize("name", ["exp", "tanh", "softmax", "cumsum", "sin times cos", "polynomial", "layernorm"])
def test_one_wrong_entry_is_caught_everywhere(name: str, n: int) -> None:
    """Off by 1e-4: w_j becomes w_j + 1e-4 max(|w_j|, root mean square of w), tried at 250 positions, one direction."""
    points, weights, (gradient,), direction = draw(BY_NAME[name], n, 0)
    estimate = slope(BY_NAME[name].f, points, direction, weights)
    assert judge(inner((gradient,), direction), estimate) is Verdict.AGREES
    typical = math.sqrt(np.mean(gradient**2))
    smallest = np.argsort(np.abs(points[0]))[:50]
    for j in (*smallest, *np.linspace(0, n - 1, 200).astype(int)):
        wrong = gradient.copy()
        wrong[j] += 1e-4 * max(abs(wrong[j]), typical)
        assert judge(inner((wrong,), direction), estimate) is Verdict.DISAGREES


def test_one_wrong_entry_is_caught_beside_much_larger_points() -> None:
    x = np.ones(1000)
    x[::10] = 1e-6
    direction = directions((x,), seed=1)
    estimate = slope(one(np.sin), (x,), direction, (np.ones(1000),))
    wrong = np.cos(x)
    wrong[0] *= 1 + 1e-4
    assert judge(inner((np.cos(x),), direction), estimate) is Verdict.AGREES
    assert judge(inner((wrong,), direction), estimate) is Verdict.DISAGREES


@pytest.mark.parametrize("name", [f.name for f in FUNCTIONS if f.refusals == "none"])
def test_zeros_for_gradients_and_ones_for_zeros_are_caught(name: str) -> None:
    points, weights, gradients, direction = draw(BY_NAME[name], 20, 3)
    if name == "tanh, saturated" or not any(g.any() for g in gradients):
        gradients = tuple(np.ones_like(g) for g in gradients)
    else:
        gradients = tuple(np.zeros_like(g) for g in gradients)
    estimate = slope(BY_NAME[name].f, points, direction, weights)
    assert judge(inner(gradients, direction), estimate) is Verdict.DISAGREES


@pytest.mark.parametrize("name", ["z * z", "exp(i z)", "|z|^2", "1 / z"])
def test_conjugated_gradients_are_caught(name: str) -> None:
    points, weights, gradients, direction = draw(BY_NAME[name], 20, 3)
    estimate = slope(BY_NAME[name].f, points, direction, weights)
    assert judge(inner(tuple(np.conj(g) for g in gradients), direction), estimate) is Verdict.DISAGREES


def test_reasons() -> None:
    """Each way to be inconclusive."""
    cases = {
        NOT_FINITE: along(np.log, -1.0),
        TOO_FEW: along(lambda x: np.where(x == 1.0, x, np.nan), 1.0),
        KINK: along(np.abs, 0.0),
        FINER: along(lambda x: x + 1e-12 * np.sin(1e6 * x), 0.7),
        LOOSE: along(lambda x: np.sign(x) * np.abs(x) ** 1.5, 0.0),
    }
    assert {reason: estimate.reason for reason, estimate in cases.items()} == {reason: reason for reason in cases}
    assert all(judge(0.0, estimate) is Verdict.INCONCLUSIVE for estimate in cases.values())


@pytest.mark.parametrize("distance", [0.0, 1e-12, 1e-9, 1e-7, 1e-5, 1e-4, 1e-3, 1e-2])
@pytest.mark.parametrize("side", [-1.0, 1.0])
def test_kink_beside_the_point(distance: float, side: float) -> None:
    """Trusted only where the slope is that of the point's own side; at the kink itself never."""
    for rest in (0.0, 1.0):
        estimate = along(lambda x, rest=rest: np.abs(x - 1.0) + rest * np.sin(x), 1.0 + side * distance, u=1.0)
        if distance == 0:
            assert estimate.reason == KINK
        wanted = side + rest * math.cos(1.0 + side * distance)
        assert judge(wanted, estimate) is not Verdict.DISAGREES
        assert judge(wanted - side, estimate) is not Verdict.AGREES


def test_one_kink_among_a_thousand_entries() -> None:
    x = np.random.default_rng(0).standard_normal(1000)
    x[3] = 0.0
    assert along(np.abs, x).reason == KINK


def test_sort_of_many_close_values_is_not_a_false_alarm() -> None:
    function = BY_NAME["sort, normal"]
    verdicts = []
    for seed in range(60):
        points, weights, gradients, direction = draw(function, 1000, seed)
        verdicts.append(judge(inner(gradients, direction), slope(function.f, points, direction, weights)))
    assert Verdict.DISAGREES not in verdicts
    assert verdicts.count(Verdict.INCONCLUSIVE) >= 15


def test_ripple_that_the_finest_steps_resolve_is_refused() -> None:
    for x in (0.3, 0.7, 1.1):
        assert along(lambda x: x + 1e-12 * np.sin(1e6 * x), x).reason is not None


def test_a_smooth_function_stops_early_and_a_hard_one_does_not() -> None:
    assert along(np.exp, 1.0).evaluations == 15
    assert along(lambda x: np.sin(1e4 * x), 1.0).evaluations == 25


def test_levels_out_of_the_domain_are_left_out() -> None:
    estimate = along(np.log, 1e-3, u=1.0)
    assert judge(1e3, estimate) is Verdict.AGREES
    assert judge(1e3 * (1 + 1e-4), estimate) is Verdict.DISAGREES


def test_overflow_at_coarse_levels_is_left_out() -> None:
    estimate = along(np.exp, 700.0)
    exact = math.exp(700.0) * float(directions((np.asarray(700.0),), seed=0)[0])  # type: ignore[arg-type]
    assert judge(exact, estimate) is Verdict.AGREES
    assert judge(1.0001 * exact, estimate) is Verdict.DISAGREES


def test_a_singular_matrix_at_a_coarse_level_is_left_out() -> None:
    estimate = along(np.linalg.inv, np.array([[1.0]]), u=[[-16.0]])
    assert judge(16.0, estimate) is Verdict.AGREES


def test_an_exception_at_the_point_is_passed_on() -> None:
    with pytest.raises(np.linalg.LinAlgError):
        slope(one(np.linalg.inv), (np.zeros((2, 2)),), (np.ones((2, 2)),), (np.ones((2, 2)),))


def test_outputs_must_fit_the_weights() -> None:
    x = np.ones(3)
    with pytest.raises(ValueError, match=r"output 0 has shape \(3,\), its weight \(2,\)"):
        slope(one(np.exp), (x,), (x,), (np.ones(2),))
    with pytest.raises(ValueError, match="zip"):
        slope(one(np.exp), (x,), (x,), (x, x))


def test_empty_and_unmoved_points_have_slope_zero() -> None:
    empty, x = np.zeros((0, 3)), np.ones(2)
    exact = Estimate(0.0, 0.0, None, 0)
    assert slope(one(np.exp), (empty,), directions((empty,), seed=0), (empty,)) == exact
    assert slope(one(np.exp), (x,), (None,), (x,)) == exact
    assert slope(one(np.exp), (x,), (x,), (None,)) == exact
    assert judge(0.0, exact) is Verdict.AGREES
    assert judge(1e-300, exact) is Verdict.DISAGREES


def test_integers_and_none_are_passed_through() -> None:
    index, x = np.array([2, 0]), np.array([1.0, 2.0, 3.0])
    points = (None, index, x, np.array([True]))
    direction = directions(points, seed=0)
    assert [u is None for u in direction] == [True, True, False, True]
    estimate = slope(lambda p: (p[2][p[1]], p[1]), points, direction, (np.array([1.0, 10.0]), None))
    assert judge(inner((None, None, np.array([10.0, 0.0, 1.0]), None), direction), estimate) is Verdict.AGREES


def test_arguments_and_shared_output_buffers() -> None:
    """Points stay as they are, and an f that hands out one buffer again and again is read correctly."""
    x, buffer = np.array([1.0, 2.0]), np.empty(2)
    x.flags.writeable = False
    estimate = along(lambda p: np.exp(p, out=buffer), x, u=np.ones(2))
    assert judge(math.e + math.e**2, estimate) is Verdict.AGREES


@pytest.mark.filterwarnings("error")
def test_no_warning_escapes() -> None:
    assert along(lambda x: np.log(x) / x, 1e-3, u=1.0).reason is None


def test_float32_points_are_taken_as_float64() -> None:
    x = np.array([0.1, 0.2], dtype=np.float32)
    estimate = along(np.sin, x, u=np.ones(2))
    assert judge(float(np.cos(x.astype(float)).sum()), estimate) is Verdict.AGREES


@pytest.mark.parametrize("claim", [math.nan, math.inf, -math.inf])
def test_a_claim_that_is_not_finite_disagrees(claim: float) -> None:
    assert judge(claim, Estimate(1.0, 1e-9, None, 25)) is Verdict.DISAGREES
    assert judge(claim, Estimate(1.0, 1e-9, KINK, 25)) is Verdict.INCONCLUSIVE


def test_judge_allows_ten_bounds_and_the_rounding() -> None:
    estimate = Estimate(1.0, 0.125, None, 25)
    assert judge(2.25, estimate) is Verdict.AGREES
    assert judge(2.26, estimate) is Verdict.DISAGREES
    assert judge(2.26, estimate, rounding=0.01) is Verdict.AGREES


def test_inner() -> None:
    assert inner((np.array([1j, 2.0]), None, np.array(3.0)), (np.array([1j, 1.0]), np.ones(2), None)) == 3.0
    with pytest.raises(ValueError, match="shapes"):
        inner((np.ones(2),), (np.ones(3),))


def test_directions_are_relative_exact_and_repeatable() -> None:
    x = np.random.default_rng(0).uniform(1.0, 2.0, 1000)
    (u,) = directions((x,), seed=7)
    assert u is not None
    assert np.all((np.abs(u) >= 0.499 * x) & (np.abs(u) <= 1.501 * x))
    assert 400 < (u > 0).sum() < 600
    step = 2.0**-26
    assert np.mean(((x + step * u) - x) / step == u) > 0.999
    again, other = directions((x,), seed=7)[0], directions((x,), seed=8)[0]
    assert again is not None
    assert other is not None
    assert np.array_equal(u, again)
    assert not np.array_equal(u, other)


@pytest.mark.parametrize("scale", [1e-290, 1e-8, 1.0, 1e8, 1e300])
def test_directions_follow_the_scale(scale: float) -> None:
    x = scale * np.array([1.0, 2.0, 0.0, 1e-3, 1e-40])
    (u,) = directions((x,), seed=0)
    assert u is not None
    relative = np.abs(u) / scale
    # The geometric mean of 1, 2 and 1e-3 is 0.126, but 1e-40 (unless it falls out of float64's range) lowers it.
    assert np.all((relative[:2] >= 0.499) & (relative[:2] <= 3.01))
    assert np.all(relative[2:] > 0)


def test_directions_move_entries_far_below_the_others_further() -> None:
    x = np.ones(1000)
    x[:3] = 0.0, 1e-40, 1e-3
    (u,) = directions((x,), seed=0)
    assert u is not None
    # 0 and what lies below one ulp of the others move like the others, 1e-3 by 1/16 of them.
    assert np.all((np.abs(u[:2]) > 0.4) & (np.abs(u[:2]) < 1.6))
    assert 0.4 / 16 < abs(u[2]) < 1.6 / 16


def test_directions_of_zeros_scalars_empty_and_complex_arrays() -> None:
    zero, scalar, empty, unit = directions(
        (np.zeros(4), np.asarray(2.0), np.zeros(0), np.exp(1j * np.arange(9))), seed=0
    )
    assert zero is not None
    assert scalar is not None
    assert empty is not None
    assert unit is not None
    assert np.all((np.abs(zero) >= 0.5) & (np.abs(zero) <= 1.5))
    assert scalar.shape == ()
    assert empty.shape == (0,)
    assert unit.dtype == np.complex128
    assert np.all((np.abs(unit.real) > 0.3) & (np.abs(unit.imag) > 0.3))


@pytest.mark.parametrize("position", [0, 17, 5999, 6000, 9999])
def test_diagnose_names_the_entry(position: int) -> None:
    generator = np.random.default_rng(0)
    points = (generator.standard_normal((60, 100)), generator.standard_normal(4000))
    weights = (generator.standard_normal((60, 100)), generator.standard_normal(4000))
    calls = []

    def f(p: Any) -> Any:
        calls.append(1)
        return np.sin(p[0]), np.exp(p[1])

    gradients = (weights[0] * np.cos(points[0]), weights[1] * np.exp(points[1]))
    assert diagnose(f, points, gradients, weights) is None
    calls.clear()
    number, flat = (0, position) if position < 6000 else (1, position - 6000)
    expected = gradients[number].ravel()[flat]
    gradients[number].ravel()[flat] += 1e-2
    culprit = diagnose(f, points, gradients, weights)
    assert culprit is not None
    index = tuple(int(i) for i in np.unravel_index(flat, points[number].shape))
    assert (culprit.input, culprit.index, culprit.output, culprit.output_index) == (number, index, number, index)
    assert culprit.got == pytest.approx(expected + 1e-2)
    assert abs(culprit.expected - expected) <= 10 * culprit.bound
    assert len(calls) <= 200 * math.log(10_000)


def test_diagnose_bisects_the_outputs_with_the_vjp() -> None:
    x, matrix = np.array([1.0, 2.0]), np.array([[1.0, 5.0], [3.0, 1.0], [2.0, 7.0]])
    wrong = matrix.copy()
    wrong[2, 0] = 2.5

    def vjp(weights: Any) -> Any:
        return (wrong.T @ weights[0],)

    v = np.ones(3)
    culprit = diagnose(one(lambda p: matrix @ p), (x,), vjp((v,)), (v,), vjp=vjp)
    assert culprit is not None
    assert (culprit.index, culprit.output_index) == ((0,), (2,))
    blind = diagnose(one(lambda p: matrix @ p), (x,), vjp((v,)), (v,))
    assert blind is not None
    assert (blind.index, blind.output_index) == ((0,), (1,))


def test_diagnose_of_complex_missing_and_dead_entries() -> None:
    z = np.array([1 + 2j, 3 - 1j])
    culprit = diagnose(one(np.square), (z,), (2 * z,), (np.ones(2) + 0j,))
    assert culprit is not None
    assert abs(culprit.expected - 2 * np.conj(z[culprit.index])) <= 10 * culprit.bound
    missing = diagnose(one(np.exp), (np.ones(1),), (None,), (np.ones(1),))
    assert missing is not None
    assert missing.got == 0.0
    dead = diagnose(lambda p: (p[0],), (np.ones(2), np.ones(2)), (np.ones(2), np.array([0.0, 9.0])), (np.ones(2),))
    assert dead is not None
    assert (dead.input, dead.index, dead.output, dead.output_index) == (1, (1,), None, None)
    assert diagnose(one(np.exp), (np.zeros(0),), (np.zeros(0),), (np.zeros(0),)) is None


def test_diagnose_finds_an_entry_beside_a_kink() -> None:
    x = np.array([0.0, 1.0, -2.0, 3.0])
    gradient = np.array([0.0, 1.0, -1.0, 0.5])
    culprit = diagnose(one(np.abs), (x,), (gradient,), (np.ones(4),))
    assert culprit is not None
    assert culprit.index == (3,)
