"""The references of the documented Functions: derivatives against the ladder, the complex step and each other."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any
from zlib import crc32

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings

from autograd_conformance.harness.compare import same_bits
from autograd_conformance.implementations.model import ModelImplementation
from autograd_conformance.implementations.protocol import CAPABILITIES
from autograd_conformance.reference.definitions import FLOATING, Array, Function, Static
from autograd_conformance.reference.functions import EXHIBITS, FUNCTIONS
from autograd_conformance.reference.ladder import Verdict, directions, inner, judge, slope
from autograd_conformance.reference.namespace import ARRAY_NAMES, EXTRA_NAMES
from autograd_conformance.reference.properties import PROPERTIES
from autograd_conformance.reference.rounding import PRECISION, SAFETY, Tracked
from autograd_conformance.strategies.calls import Call, Tensor, calls, cotangent_values, tensor_values
from autograd_conformance.strategies.shapes import degenerate, shape_tuples

DECLARED = {**FUNCTIONS, **{name: exhibit.function for name, exhibit in EXHIBITS.items()}}
DOUBLE = ("float64", "complex128")
# Not analytic where they select by comparison, or differentiable in the real sense only.
COMPARING = {
    "ReLU", "LLTM", "Sort", "NumpySort", "GlobalMaxPool", "ReLUOneAtZero", "LLTMUndeclared", "LLTMEluSlope",
    "LLTMBiasRow", "SortFirstAxis", "NumpySortUnsorted", "BadFFT",
}  # fmt: skip
# The modulus in BadFFT has a kink wherever a coefficient vanishes, as they all do but one for constant rows.
KINKED = {"BadFFT": 0.5}
# The second derivative of elu jumps at 0, which a step of the ladder may cross.
KINKED |= dict.fromkeys(("LLTM", "LLTMUndeclared", "LLTMEluSlope", "LLTMBiasRow"), 0.2)
# What is left of a gradient through batch norm is the rest of sums that cancel, up to nothing for constant cotangents;
# the phase of a coefficient that vanishes is rounding.
CANCELLING = {"FusedConvBN", "FusedConvBNUndeclared", "BatchNormEps", "BadFFT"}

every = pytest.mark.parametrize("function", DECLARED.values(), ids=DECLARED)
true = pytest.mark.parametrize("function", [f for f in DECLARED.values() if not f.surrogate], ids=lambda f: f.name)
forward_mode = pytest.mark.parametrize("function", [f for f in DECLARED.values() if f.jvp], ids=lambda f: f.name)


def for_calls(function: Function, check: Callable[[Call], Any], *, examples: int = 40, **restrictions: Any) -> None:
    """Check the same drawn calls on every machine."""

    @seed(crc32(function.name.encode()))
    @settings(
        max_examples=examples,
        database=None,
        deadline=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )
    @given(calls(function, **restrictions))
    def run(call: Call) -> None:
        check(call)

    run()


def doubles(function: Function) -> tuple[str, ...]:
    return tuple(d for d in function.dtypes if d in DOUBLE)


class Case:
    """A call's arguments, cotangents and reference results in plain NumPy."""

    def __init__(self, function: Function, call: Call) -> None:
        self.function, self.call = function, call
        given = tensor_values(call, function)
        rest = function.arguments[len(given) :]
        self.args = (*given, *(None if isinstance(a, Array) else a.default for a in rest))
        tensors = enumerate(zip(function.arguments, call.args, strict=False))
        self.slots = [i for i, (a, t) in tensors if a.differentiable and isinstance(t, Tensor)]
        self.outputs = function.forward(*self.args)
        shapes = [np.shape(y) for y in self.outputs]
        dtypes = [np.asarray(y).dtype.name for y in self.outputs]
        found = cotangent_values(call, shapes, dtypes)
        self.cotangents = tuple(
            g if g is not None or not o.differentiable else np.zeros(shape, dtype)
            for g, o, shape, dtype in zip(found, function.outputs, shapes, dtypes, strict=True)
        )
        self.points = tuple(self.args[i] for i in self.slots)
        self.direction = directions(self.points, seed=call.seed)

    def at(self, points: tuple[Any, ...]) -> tuple[Any, ...]:
        """The arguments with the differentiable ones replaced."""
        args = list(self.args)
        for slot, point in zip(self.slots, points, strict=True):
            args[slot] = point
        return tuple(args)

    def f(self, points: tuple[Any, ...]) -> tuple[Any, ...]:
        return self.function.forward(*self.at(points))

    def gradients(self, cotangents: tuple[Any, ...] | None = None) -> tuple[Any, ...]:
        found = self.function.vjp(self.cotangents if cotangents is None else cotangents, *self.args)
        return tuple(np.asarray(found[i]) for i in self.slots)

    def tangents(self, direction: tuple[Any, ...]) -> tuple[Any, ...]:
        """One entry per argument, as `Function.jvp` takes them."""
        found: list[Any] = [None] * len(self.args)
        for slot, u in zip(self.slots, direction, strict=True):
            found[slot] = u
        return tuple(found)

    def tracked(self, arrays: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(Tracked.exact(a, "float64") if _floating(a) else a for a in arrays)

    def tracked_arguments(self) -> tuple[Any, ...]:
        return self.at(self.tracked(self.points))

    def gradient_rounding(self, cotangents: tuple[Any, ...], along: tuple[Any, ...]) -> float:
        """What the inner product of the computed gradients and a direction may be off by, and summing it."""
        found = self.function.vjp(self.tracked(cotangents), *self.tracked_arguments())
        return _rounding([found[i] for i in self.slots], along)

    def tangent_rounding(self, direction: tuple[Any, ...], along: tuple[Any, ...]) -> float:
        assert self.function.jvp is not None
        return _rounding(self.function.jvp(self.tracked(self.tangents(direction)), *self.tracked_arguments()), along)


def _floating(value: Any) -> bool:
    return isinstance(value, (np.ndarray, np.generic)) and value.dtype.kind in "fc"


def _rounding(arrays: Any, along: Any) -> float:
    total = 0.0
    for array, u in zip(arrays, along, strict=True):
        if array is not None and u is not None and np.size(u):
            value, error = (array.value, array.error) if isinstance(array, Tracked) else (array, 0.0)
            size = np.abs(u)
            passed = np.sum(np.where(size > 0, error, 0.0) * size)
            total += SAFETY * float(passed + np.size(u) * PRECISION["float64"].unit * np.sum(np.abs(value) * size))
    return total


# --- derivatives -----------------------------------------------------------------------------------------------------


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
        for_calls(function, check, dtypes=(dtype,), smooth=True)
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

    for_calls(function, check, examples=50, dtypes=doubles(function), smooth=True)
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

    for_calls(function, check, dtypes=doubles(function), smooth=True)
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
    """Where the forward is analytic, f(x + ihu) / ih has no truncation error to speak of and nothing cancels."""
    step = 2.0**-200

    def check(call: Call) -> None:
        case = Case(function, call)
        moved = case.f(tuple(x + 1j * step * u for x, u in zip(case.points, case.direction, strict=True)))
        slopes = tuple(None if g is None else np.imag(y) / step for y, g in zip(moved, case.cotangents, strict=True))
        claim, found = inner(case.gradients(), case.direction), inner(case.cotangents, slopes)
        # Twice: the step makes the rounding errors of the same formula, carried forwards.
        rounding = 2 * case.gradient_rounding(case.cotangents, case.direction) + _rounding(slopes, case.cotangents)
        # The truncation error is of order step squared, far below the step.
        assert abs(claim - found) <= rounding + step

    for_calls(function, check, dtypes=("float64",), smooth=True)


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
        for_calls(function, check, dtypes=(dtype,), smooth=True)
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


# --- form ------------------------------------------------------------------------------------------------------------


@every
def test_references_give_what_is_declared_and_modify_nothing(function: Function) -> None:
    """Shapes of every kind, empty and 0-d included; read-only inputs turn any in-place change into an error."""

    def check(call: Call) -> None:
        case = Case(function, call)
        arrays = [a for a in (*case.args, *case.cotangents) if isinstance(a, np.ndarray)]
        before = [a.tobytes() for a in arrays]
        for array in arrays:
            array.flags.writeable = False
        outputs = function.forward(*case.args)
        gradients = function.vjp(case.cotangents, *case.args)
        assert isinstance(outputs, tuple)
        assert isinstance(gradients, tuple)
        assert len(outputs) == len(function.outputs)
        assert len(gradients) == len(function.arguments)
        kind = "c" if call.dtype.startswith("complex") else "f"
        for output, declared in zip(outputs, function.outputs, strict=True):
            assert not declared.differentiable or np.asarray(output).dtype.kind == kind
            assert declared.differentiable or np.asarray(output).dtype.kind == "i"
        for slot, (gradient, argument) in enumerate(zip(gradients, case.args, strict=True)):
            if slot in case.slots:
                assert np.shape(gradient) == argument.shape
                assert np.asarray(gradient).dtype == argument.dtype
            else:
                assert gradient is None
        if function.jvp is not None:
            moved = function.jvp(case.tangents(case.direction), *case.args)
            shapes = [np.shape(y) if o.differentiable else None for y, o in zip(outputs, function.outputs, strict=True)]
            assert [None if m is None else np.shape(m) for m in moved] == shapes
        assert [a.tobytes() for a in arrays] == before

    for_calls(function, check, dtypes=doubles(function))
    hard = tuple(shapes for shapes in shape_tuples(function) if degenerate(shapes))[:200]
    if hard:
        for_calls(function, check, dtypes=doubles(function), shapes=hard)


@every
def test_references_run_on_tracked_arrays(function: Function) -> None:
    """The values are those of the plain run, bit for bit, and every floating result carries its bound."""
    bounded = 0

    def check(call: Call) -> None:
        nonlocal bounded
        case = Case(function, call)
        arguments = case.tracked_arguments()
        pairs = list(zip(function.forward(*arguments), case.outputs, function.outputs, strict=True))
        for mine, _, declared in pairs:
            assert isinstance(mine, Tracked) or not declared.differentiable
        gradients = function.vjp(case.tracked(case.cotangents), *arguments)
        plain_gradients = function.vjp(case.cotangents, *case.args)
        assert [g is None for g in gradients] == [g is None for g in plain_gradients]
        pairs += [(m, p, None) for m, p in zip(gradients, plain_gradients, strict=True) if m is not None]
        if function.jvp is not None:
            tangents = case.tangents(case.direction)
            moved = function.jvp(case.tracked(tangents), *arguments)
            pairs += [
                (m, p, None) for m, p in zip(moved, function.jvp(tangents, *case.args), strict=True) if m is not None
            ]
        for mine, plain, _ in pairs:
            if isinstance(mine, Tracked):
                assert mine.error.shape == mine.value.shape
                assert mine.error.dtype == np.float64
                assert np.all(mine.error >= 0)
                # The phase of a coefficient that vanishes may be any.
                assert function.name == "BadFFT" or np.all(np.isfinite(mine.error))
                # NumPy rounds products of complex scalars otherwise than those of arrays.
                assert np.allclose(mine.value, np.asarray(plain), rtol=1e-15, atol=0, equal_nan=True)
                bounded += mine.size
            else:
                assert same_bits(np.asarray(mine), np.asarray(plain))

    for_calls(function, check, dtypes=doubles(function), smooth=True)
    assert bounded > 0


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@every
def test_rounding_bounds_of_references_can_tell_a_gradient_from_zero(function: Function, dtype: str) -> None:
    """A bound above all that it belongs to admits a gradient of zeros."""
    telling: Counter[bool] = Counter()

    def check(call: Call) -> None:
        case = Case(function, call)
        arguments = case.at(tuple(Tracked.exact(x, dtype) for x in case.points))
        cotangents = tuple(None if g is None else Tracked.exact(g, dtype) for g in case.cotangents)
        for found in (*function.forward(*arguments), *function.vjp(cotangents, *arguments)):
            if isinstance(found, Tracked) and np.any(found.value):
                telling[bool(SAFETY * np.median(found.error) < np.max(np.abs(found.value)))] += 1

    for_calls(function, check, examples=25, dtypes=doubles(function))
    # In most draws.
    needed = 0.25 if function.name in CANCELLING and dtype != "float32" else 0.5
    assert telling[True] >= needed * telling.total() > 0


def _adds_in_place(cotangents: Any, x: Any) -> tuple[Any]:
    cotangents[0][...] += 1
    return (cotangents[0] * np.conj(np.exp(x)),)


@pytest.mark.parametrize(
    "wrong",
    [
        {"vjp": _adds_in_place},
        {"vjp": lambda g, x: (g[0].sum() * np.conj(np.exp(x)).sum(),)},
        {"vjp": lambda g, x: (g[0] * np.conj(np.exp(x)), None)},
        {"vjp": lambda g, x: (g[0].real * np.exp(x).real,)},
        {"forward": lambda x: np.exp(x)},
        {"forward": lambda x: (np.exp(np.atleast_1d(x)),)},
    ],
)
def test_a_reference_of_the_wrong_form_is_caught(wrong: dict[str, Any]) -> None:
    with pytest.raises((AssertionError, ValueError, TypeError)):
        test_references_give_what_is_declared_and_modify_nothing(replace(FUNCTIONS["Exp"], **wrong))


def test_a_reference_that_leaves_the_tracked_arrays_is_caught() -> None:
    lossy = replace(FUNCTIONS["Exp"], forward=lambda x: (np.exp(getattr(x, "value", x)),))
    with pytest.raises(AssertionError):
        test_references_run_on_tracked_arrays(lossy)


# --- declarations ----------------------------------------------------------------------------------------------------


def test_keys_are_the_names() -> None:
    assert all(name == function.name for name, function in DECLARED.items())
    assert not set(FUNCTIONS) & set(EXHIBITS)
    assert len(DECLARED) == len(FUNCTIONS) + len(EXHIBITS)


def test_each_documented_function_says_what_only_it_exercises() -> None:
    texts = [function.exercises for function in FUNCTIONS.values()]
    assert len(set(texts)) == len(texts)


@every
def test_declaration_is_coherent(function: Function) -> None:
    for text in (function.document, function.exercises):
        assert text.strip() == text != ""
        assert "\n" not in text
        assert len(text) <= 120
        assert not text.endswith(".")
    assert re.fullmatch(r"[A-Z][A-Za-z0-9]*", function.name)
    assert function.dtypes
    assert list(function.dtypes) == [d for d in FLOATING if d in function.dtypes]
    assert doubles(function), "the ladder and the strategies need a double-precision dtype"
    assert function.needs <= set(CAPABILITIES)
    names = [argument.name for argument in function.arguments]
    assert len(set(names)) == len(names)
    assert any(argument.differentiable for argument in function.arrays)
    assert any(output.differentiable for output in function.outputs)
    assert all(isinstance(function.arguments[i], Array) for i in function.inplace)
    assert ("inplace" in function.needs) == bool(function.inplace)
    for argument in function.arrays:
        assert (argument.dtype is None) == (argument.make is None)
    for name in function.sizes:
        tokens = " ".join(argument.dims for argument in function.arrays)
        assert name in re.findall(r"\*?[a-z_]+", tokens), f"{name} sizes nothing"
    optional = [bool(a.optional) if isinstance(a, Array) else a.default is not ... for a in function.arguments]
    omitted = ["omitted" in a.optional if isinstance(a, Array) else a.default is not ... for a in function.arguments]
    assert omitted == sorted(omitted), "only trailing arguments can be omitted"
    assert sum(optional) <= len(function.arguments)
    for static in function.statics:
        for shapes in shape_tuples(function)[:20]:
            assert len(static.choices(shapes)) > 0
            if static.default is not ...:
                assert static.default in static.choices(shapes)


@pytest.mark.parametrize("exhibit", EXHIBITS.values(), ids=EXHIBITS)
def test_exhibit_names_its_fault(exhibit: Any) -> None:
    assert exhibit.caught_by
    assert set(exhibit.caught_by) <= set(PROPERTIES)
    assert exhibit.fault
    assert "\n" not in exhibit.fault


class Recording:
    """A namespace that notes which of its names are used."""

    def __init__(self, namespace: Any) -> None:
        self.namespace, self.used = namespace, set[str]()

    def __getattr__(self, name: str) -> Any:
        self.used.add(name)
        return getattr(self.namespace, name)


@every
def test_body_does_what_is_declared(function: Function) -> None:
    """Observed while the body runs on the model: names, once-differentiability, marks and rules."""
    implementation = ModelImplementation()
    xp, declared = Recording(implementation.xp), []

    def once_differentiable(backward: Any) -> Any:
        declared.append(backward)
        return implementation.ag.once_differentiable(backward)

    ag = SimpleNamespace(Function=implementation.ag.Function, once_differentiable=once_differentiable)
    cls = function.body(xp, ag)
    custom = [kind for kind in cls.__mro__ if issubclass(kind, ag.Function) and kind is not ag.Function]
    own = {name for kind in custom for name in vars(kind)}
    assert ("jvp" in own) == (function.jvp is not None)
    assert ("vmap" in own or "generate_vmap_rule" in own) == function.batching

    def check(call: Call) -> None:
        case = Case(function, call)
        tensors = [
            implementation.array(np.array(v), t.dtype, "cpu") if isinstance(t, Tensor) else t
            for v, t in zip(case.args, call.args, strict=False)
        ]
        slots = [i for i, t in enumerate(call.args) if isinstance(t, Tensor)]

        def f(*primals: Any) -> Any:
            args = list(tensors)
            for slot, x in zip(slots, primals, strict=True):
                args[slot] = implementation.xp.copy(x) if slot in function.inplace else x
            return implementation.function(cls)(*args)

        track = [t.requires_grad for t in call.tensors]
        outputs, pull = implementation.vjp(f, [tensors[i] for i in slots], track=track)
        dtypes = [implementation.describe(y).dtype for y in outputs]
        seeds = zip(case.cotangents, dtypes, strict=True)
        pull([None if g is None else implementation.array(g, dtype, "cpu") for g, dtype in seeds])
        floating = [y for y, o in zip(outputs, function.outputs, strict=True) if o.differentiable]
        marked = [y for y, o in zip(outputs, function.outputs, strict=True) if not o.differentiable]
        assert all(implementation.requires_grad(y) for y in floating)
        assert not any(implementation.requires_grad(y) for y in marked)

    if function.name in FUNCTIONS:
        for_calls(function, check, examples=10, dtypes=doubles(function), unused=False, full=True)
        assert bool(declared) == (function.double == "once")
    assert xp.used <= {*ARRAY_NAMES, *EXTRA_NAMES, "float64"}
    assert not xp.used & {"to_numpy", "from_numpy"} or "numpy" in function.needs
    assert "sparse_matmul" not in xp.used or "sparse" in function.needs


def test_statics_are_the_arguments_that_are_no_tensors() -> None:
    for function in DECLARED.values():
        assert all(isinstance(argument, Array | Static) for argument in function.arguments)
        assert len(function.arrays) + len(function.statics) == len(function.arguments)
