"""The derivatives of the references against the ladder, the complex step and each other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from autograd_conformance.reference.definitions import Function
from autograd_conformance.reference.functions import FUNCTIONS
from autograd_conformance.reference.ladder import Verdict, inner, judge, slope
from autograd_conformance.reference.rounding import PRECISION
from autograd_conformance.selftests.oracles.reference_cases import Case, doubles, for_calls, rounding_along
from autograd_conformance.selftests.support.declared import DECLARED, every
from autograd_conformance.strategies.calls import Call
from autograd_conformance.strategies.scope import SMOOTH

# Not analytic where they select by comparison, or differentiable in the real sense only.
COMPARING = {
    "ReLU", "LLTM", "Sort", "NumpySort", "GlobalMaxPool", "ReLUOneAtZero", "LLTMUndeclared", "LLTMEluSlope",
    "LLTMBiasRow", "SortFirstAxis", "NumpySortUnsorted", "BadFFT",
}  # fmt: skip
# The modulus in BadFFT has a kink wherever a coefficient vanishes, as they all do but one for constant rows.
KINKED = {"BadFFT": 0.5}
# The second derivative of elu jumps at 0, which a step of the ladder may cross.
KINKED |= dict.fromkeys(("LLTM", "LLTMUndeclared", "LLTMEluSlope", "LLTMBiasRow"), 0.2)

true = pytest.mark.parametrize("function", [f for f in DECLARED.values() if not f.surrogate], ids=lambda f: f.name)
forward_mode = pytest.mark.parametrize("function", [f for f in DECLARED.values() if f.jvp], ids=lambda f: f.name)


@true
def test_vjp_is_the_slope_of_the_forward(function: Function) -> None:
    verdicts: Counter[Verdict] = Counter()

    def check(call: Call) -> None:
        case = Case(function, call)
        estimate = slope(case.f, case.points, case.direction, case.cotangents)
        claim = inner(case.gradients(), case.direction)
        verdict = judge(claim, estimate, rounding=case.gradient_rounding(case.cotangents, case.direction))
        verdicts[verdict] += 1
        assert verdict is not Verdict.DISAGREES, (claim, estimate)

    for dtype in doubles(function):
        for_calls(function, check, dtypes=(dtype,), scope=SMOOTH)
    assert verdicts.total() >= 40
    assert verdicts[Verdict.INCONCLUSIVE] <= KINKED.get(function.name, 0) * verdicts.total()


@true
def test_each_gradient_entry_is_the_slope_along_it(function: Function) -> None:
    """A direction of one entry sees what may cancel along a random one."""
    compared = 0

    def check(call: Call) -> None:
        nonlocal compared
        case = Case(function, call)
        gradients = case.gradients()
        rng = np.random.default_rng(call.seed)
        for number, u in enumerate(case.direction):
            if u is None or u.size == 0:
                continue
            chosen = np.arange(u.size).reshape(u.shape) == rng.integers(u.size)
            along = tuple(np.where(chosen, u, 0) if n == number else None for n in range(len(case.points)))
            estimate = slope(case.f, case.points, along, case.cotangents)
            rounding = case.gradient_rounding(case.cotangents, along)
            assert judge(inner(gradients, along), estimate, rounding=rounding) is not Verdict.DISAGREES
            compared += estimate.reason is None

    for_calls(function, check, examples=50, dtypes=doubles(function), scope=SMOOTH)
    assert compared >= 12


@pytest.mark.parametrize("function", [f for f in DECLARED.values() if f.surrogate], ids=lambda f: f.name)
def test_surrogate_is_its_declared_rule_and_not_the_derivative(function: Function) -> None:
    rules = {
        "GradientScaler": lambda case: (case.cotangents[0] * 3.14,),
        "ZeroGradients": lambda case: tuple(np.zeros_like(x) for x in case.points),
    }
    verdicts: Counter[Verdict] = Counter()

    def check(call: Call) -> None:
        case = Case(function, call)
        for mine, rule in zip(case.gradients(), rules[function.name](case), strict=True):
            assert np.array_equal(mine, rule)
        estimate = slope(case.f, case.points, case.direction, case.cotangents)
        verdicts[judge(inner(case.gradients(), case.direction), estimate)] += 1

    for_calls(function, check, dtypes=doubles(function), scope=SMOOTH)
    assert verdicts[Verdict.DISAGREES] > verdicts.total() / 2


@pytest.mark.parametrize("name", ["ReLU", "ReLUOneAtZero"])
def test_relu_takes_the_subgradient_of_minimum_norm_at_its_kink(name: str) -> None:
    x = np.array([0.0, -0.0, 1.0, -1.0])
    (gradient,) = FUNCTIONS["ReLU"].vjp((np.ones(4),), x)
    (declared,) = DECLARED[name].vjp((np.ones(4),), x)
    assert gradient.tolist() == declared.tolist() == [0, 0, 1, 0]


@pytest.mark.parametrize("name", ["LLTM", "LLTMEluSlope"])
def test_elu_has_the_slope_one_at_zero(name: str) -> None:
    """All gates are 0: the sigmoids are 1/2, and the cell moves by half of what the bias of the candidate does."""
    x = weights = old = np.zeros((1, 1))
    weights, bias = np.zeros((3, 2)), np.zeros(3)
    gradient = DECLARED[name].vjp((np.zeros((1, 1)), np.ones((1, 1))), x, weights, bias, old, old)[2]
    assert gradient.tolist() == [0, 0, 0.5]


ANALYTIC = [f for f in DECLARED.values() if f.name not in COMPARING and not f.surrogate and "float64" in f.dtypes]


@pytest.mark.parametrize("function", ANALYTIC, ids=lambda f: f.name)
def test_vjp_is_the_complex_step_of_the_forward(function: Function) -> None:
    """Where the forward is analytic, f(x + ihu) / ih has no notable truncation error and nothing cancels."""
    step = 2.0**-200

    def check(call: Call) -> None:
        case = Case(function, call)
        moved = case.f(tuple(x + 1j * step * u for x, u in zip(case.points, case.direction, strict=True)))
        slopes = tuple(None if g is None else np.imag(y) / step for y, g in zip(moved, case.cotangents, strict=True))
        claim, found = inner(case.gradients(), case.direction), inner(case.cotangents, slopes)
        # Twice: the step makes the rounding errors of the same formula, carried forwards.
        rounding = 2 * case.gradient_rounding(case.cotangents, case.direction) + rounding_along(slopes, case.cotangents)
        # The truncation error is of order step squared, far below the step.
        assert abs(claim - found) <= rounding + step

    for_calls(function, check, dtypes=("float64",), scope=SMOOTH)


def test_comparing_functions_are_exactly_those_that_a_complex_step_cannot_see_through() -> None:
    """The list above hides no Function that has complex dtypes and so is analytic."""
    assert {name for name in COMPARING if set(DECLARED[name].dtypes) & {"complex128"}} == set()
    assert set(DECLARED) >= COMPARING


@forward_mode
def test_jvp_is_the_slope_of_the_forward(function: Function) -> None:
    conclusive = 0

    def check(call: Call) -> None:
        nonlocal conclusive
        case = Case(function, call)
        assert function.jvp is not None
        moved = function.jvp(case.tangents(case.direction), *case.args)
        assert [m is None for m in moved] == [not o.differentiable for o in function.outputs]
        estimate = slope(case.f, case.points, case.direction, case.cotangents)
        rounding = case.tangent_rounding(case.direction, case.cotangents)
        assert judge(inner(case.cotangents, moved), estimate, rounding=rounding) is not Verdict.DISAGREES
        conclusive += estimate.reason is None

    for dtype in doubles(function):
        for_calls(function, check, dtypes=(dtype,), scope=SMOOTH)
    assert conclusive >= 30


@forward_mode
def test_vjp_and_jvp_are_adjoint(function: Function) -> None:
    """Also on kinks and for special values, where no ladder helps."""

    def check(call: Call) -> None:
        case = Case(function, call)
        assert function.jvp is not None
        moved = function.jvp(case.tangents(case.direction), *case.args)
        there, back = inner(case.cotangents, moved), inner(case.gradients(), case.direction)
        rounding = case.tangent_rounding(case.direction, case.cotangents)
        assert abs(there - back) <= rounding + case.gradient_rounding(case.cotangents, case.direction)

    for_calls(function, check, examples=80, dtypes=doubles(function))


@every
def test_vjp_is_linear_in_the_cotangents(function: Function) -> None:
    """Over the complex numbers too: a gradient of a holomorphic forward is the cotangent times something."""

    def check(call: Call) -> None:
        case = Case(function, call)
        factor = 1j - 2 if call.dtype == "complex128" and case.outputs[0].dtype.kind == "c" else -2
        scaled = tuple(None if g is None else factor * g for g in case.cotangents)
        for plain, mine in zip(case.gradients(), case.gradients(scaled), strict=True):
            assert np.allclose(factor * plain, mine, rtol=64 * PRECISION["float64"].unit, atol=1e-12)
        zero = tuple(None if g is None else np.zeros_like(g) for g in case.cotangents)
        assert all(not np.any(g) for g in case.gradients(zero))

    for_calls(function, check, examples=25, dtypes=doubles(function))


WRONG = {
    "factor not conjugated": replace(FUNCTIONS["Exp"], vjp=lambda g, x: (g[0] * np.exp(x),)),
    "factor missing": replace(FUNCTIONS["Square"], vjp=lambda g, x: (g[0] * np.conj(x),)),
    "second cotangent ignored": replace(FUNCTIONS["MyCube"], vjp=lambda g, x: (3 * g[0] * np.conj(x * x),)),
    "transposed too much": replace(FUNCTIONS["NumpyTake"], vjp=lambda g, *_: (g[0], None, None, None)),
    "slope at the wrong place": replace(
        FUNCTIONS["SaveForBackward"], vjp=lambda g, x, y, z: (g[0] * np.conj(y), g[0] * np.conj(x + z + x * z), None)
    ),
}


@pytest.mark.parametrize("function", WRONG.values(), ids=WRONG)
@pytest.mark.parametrize(
    "check", [test_vjp_is_the_slope_of_the_forward, test_each_gradient_entry_is_the_slope_along_it]
)
def test_a_wrong_vjp_is_caught_by_the_ladder(check: Callable[[Function], None], function: Function) -> None:
    with pytest.raises(AssertionError):
        check(function)


@pytest.mark.parametrize("name", ["factor missing", "second cotangent ignored", "slope at the wrong place"])
def test_a_wrong_vjp_is_caught_by_the_complex_step(name: str) -> None:
    with pytest.raises(AssertionError):
        test_vjp_is_the_complex_step_of_the_forward(WRONG[name])


@pytest.mark.parametrize("check", [test_jvp_is_the_slope_of_the_forward, test_vjp_and_jvp_are_adjoint])
def test_a_wrong_jvp_is_caught(check: Callable[[Function], None]) -> None:
    with pytest.raises(AssertionError):
        check(replace(FUNCTIONS["MyCube"], jvp=lambda t, x: (3 * x * x * t[0], 6 * np.conj(x) * t[0] + 1e-9)))
