"""The namespace of the NumPy model: its derivatives against differences."""

from __future__ import annotations

import numpy as np
import pytest

from autograd_conformance.reference.model import grad
from autograd_conformance.reference.model_namespace import DTYPES, OPERATIONS, xp
from autograd_conformance.reference.model_tensors import Tensor
from autograd_conformance.reference.namespace import ARRAY_NAMES, EXTRA_NAMES
from autograd_conformance.selftests.implementations.model_functions import OTHER, REAL, leaf, values

ORDER = np.array([[2, 0], [1, 1]])
POSITIONS = np.array([[0, 1, 0], [2, 0, 2]])
REAL_ONLY = {"max": [(lambda x: xp.max(x), [REAL]), (lambda x: xp.max(x, axis=1, keepdims=True), [REAL])]}
CALLS = {
    "abs": [(xp.abs, [REAL])],
    "broadcast_to": [
        (lambda x: xp.broadcast_to(x, (4, 2, 3)), [REAL]), (lambda x: xp.broadcast_to(x, (3, 3)), [REAL[:1]]),
    ],
    "concat": [
        (lambda x, y: xp.concat([x, y, x], axis=-1), [REAL, OTHER]), (lambda x, y: xp.concat([x, y]), [REAL, OTHER]),
    ],
    "conj": [(xp.conj, [REAL])],
    "copy": [(xp.copy, [REAL])],
    "cos": [(xp.cos, [REAL])],
    "cosh": [(xp.cosh, [REAL])],
    "exp": [(xp.exp, [REAL])],
    "expand_dims": [(lambda x: xp.expand_dims(x, axis=1), [REAL])],
    "flip": [(lambda x: xp.flip(x, axis=1), [REAL]), (xp.flip, [REAL])],
    "imag": [(xp.imag, [REAL])],
    "matmul": [
        (xp.matmul, [REAL, OTHER.T]), (xp.matmul, [REAL, OTHER[0]]), (xp.matmul, [REAL[0], OTHER.T]),
        (xp.matmul, [REAL[0], OTHER[0]]), (xp.matmul, [np.stack([REAL, OTHER]), OTHER.T]),
        (xp.matmul, [np.stack([REAL, OTHER]), OTHER[0]]), (xp.matmul, [REAL[0], np.stack([REAL.T, OTHER.T])]),
    ],
    "matrix_transpose": [(xp.matrix_transpose, [REAL]), (lambda x: x.mT, [REAL])],
    "max": [],
    "mean": [(xp.mean, [REAL]), (lambda x: xp.mean(x, axis=0, keepdims=True), [REAL])],
    "permute_dims": [(lambda x: xp.permute_dims(x, (2, 0, -2)), [REAL[None]])],
    "real": [(xp.real, [REAL])],
    "reshape": [(lambda x: xp.reshape(x, (3, -1)), [REAL])],
    "sign": [(xp.sign, [REAL])],
    "sin": [(xp.sin, [REAL])],
    "sinh": [(xp.sinh, [REAL])],
    "sparse_matmul": [(lambda v, b: xp.sparse_matmul(Tensor(POSITIONS), v, (2, 3), b), [REAL[0], OTHER.T])],
    "sqrt": [(xp.sqrt, [REAL**2])],
    "stack": [(lambda x, y: xp.stack([x, y, x], axis=1), [REAL, OTHER])],
    "sum": [
        (xp.sum, [REAL]), (lambda x: xp.sum(x, axis=(-1,)), [REAL]), (lambda x: xp.sum(x, 0, keepdims=True), [REAL]),
    ],
    "take": [(lambda x: xp.take(x, Tensor(ORDER), axis=1), [REAL]), (lambda x: xp.take(x, 1, axis=-2), [REAL])],
    "take_along_axis": [(lambda x: xp.take_along_axis(x, Tensor(ORDER), axis=1), [REAL])],
    "tanh": [(xp.tanh, [REAL])],
    "where": [(lambda x, y: xp.where(Tensor(REAL > 0), x, y), [REAL, OTHER[0]])],
    "operators": [
        (lambda x, y: x * y + x / y - y**3 * 2.0 - (-x) / 3 + 1 / y, [REAL, OTHER]),
        (lambda x, y: x @ y, [REAL, OTHER.T]),
        (lambda x, y: x * y - x / y, [REAL, OTHER[:, :1]]), (lambda x, y: (2 - x) ** 2 + y**0, [REAL, OTHER[0]]),
        (lambda x: x[1, ::2] * x[..., 0], [REAL]), (lambda x: x[Tensor(ORDER)], [np.stack([REAL[0]] * 3)]),
        (lambda x: xp.astype(x, "float64" if x.dtype.kind == "f" else "complex128"), [REAL]),
    ],
}  # fmt: skip
SINGLE = {
    "arange": lambda: (xp.arange(2, 9, 3, device="cpu"), np.arange(2, 9, 3)),
    "argmax": lambda: (xp.argmax(Tensor(REAL), axis=1), REAL.argmax(1)),
    "argsort": lambda: (xp.argsort(Tensor(REAL), axis=0, descending=True), np.argsort(-REAL, 0)),
    "ones_like": lambda: (xp.ones_like(Tensor(REAL)), np.ones((2, 3))),
    "zeros": lambda: (xp.zeros((2, 3), dtype=xp.int64, device="cpu"), np.zeros((2, 3), int)),
    "zeros_like": lambda: (xp.zeros_like(leaf(REAL)), np.zeros((2, 3))),
    "to_numpy": lambda: (Tensor(xp.to_numpy(leaf(REAL))), REAL),
    "from_numpy": lambda: (xp.from_numpy(REAL, leaf(REAL)), REAL),
}
CASES = [
    pytest.param(f, arrays, id=f"{name}-{i}-{'complex' if np.iscomplexobj(arrays[0]) else 'real'}")
    for name, calls in CALLS.items()
    for i, (f, arrays) in enumerate(calls + [(f, [a + 0.5j * np.flip(a) for a in arrays]) for f, arrays in calls])
] + [
    pytest.param(f, arrays, id=f"{name}-{i}")
    for name, calls in REAL_ONLY.items()
    for i, (f, arrays) in enumerate(calls)
]


def test_every_name_is_covered():
    assert set(ARRAY_NAMES) | set(EXTRA_NAMES) == (set(CALLS) | set(SINGLE)) - {"operators"}
    assert set(ARRAY_NAMES) | set(EXTRA_NAMES) <= set(vars(xp))


def inner(a, b):
    """The real inner product that gradients are defined by."""
    return float(np.real(np.sum(np.conj(a) * b)))


def pattern(shape, dtype, phase):
    """An array without symmetries."""
    entries = np.cos(1.7 * np.arange(np.prod(shape, dtype=int)) + phase).reshape(shape)
    return entries + 1j * np.sin(entries) if np.dtype(dtype).kind == "c" else entries


def slope(f, x, direction):
    """The derivative of a real ``f`` along a direction, of fourth order."""
    h = 1e-4
    at = [f(x + step * h * direction) for step in (-2, -1, 1, 2)]
    return (at[0] - 8 * at[1] + 8 * at[2] - at[3]) / (12 * h)


def pullback(f, tensors, create_graph=False):
    y = f(*tensors)
    if not y.requires_grad:
        return [None] * len(tensors)
    return grad([y], tensors, [Tensor(pattern(y.shape, y.dtype, 0.3))], create_graph=create_graph, allow_unused=True)


def directions(array):
    units = np.eye(array.size).reshape(-1, *array.shape)
    return [*units, *(1j * units if np.iscomplexobj(array) else [])]


def varied(arrays, i, x):
    return [x if j == i else a for j, a in enumerate(arrays)]


@pytest.mark.parametrize(("f", "arrays"), CASES)
def test_gradient(f, arrays):
    def objective(i, x):
        y = f(*map(Tensor, varied(arrays, i, x)))
        return inner(pattern(y.shape, y.dtype, 0.3), y.data)

    for i, (x, g) in enumerate(zip(arrays, pullback(f, [leaf(a) for a in arrays]), strict=True)):
        assert g.shape == x.shape
        assert g.dtype == x.dtype
        for d in directions(x):
            assert inner(g.data, d) == pytest.approx(slope(lambda v, i=i: objective(i, v), x, d), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize(("f", "arrays"), CASES)
def test_second_gradient(f, arrays):
    def first(tensors, create_graph):
        gradients = [g for g in pullback(f, tensors, create_graph) if g is not None]
        return gradients, [Tensor(pattern(g.shape, g.dtype, 1.1 + k)) for k, g in enumerate(gradients)]

    def objective(i, x):
        gradients, weights = first([leaf(a) for a in varied(arrays, i, x)], create_graph=False)
        return sum(inner(w.data, g.data) for w, g in zip(weights, gradients, strict=True))

    tensors = [leaf(a) for a in arrays]
    gradients, weights = first(tensors, create_graph=True)
    used = [k for k, g in enumerate(gradients) if g.requires_grad]
    seconds = grad([gradients[k] for k in used], tensors, [weights[k] for k in used], allow_unused=True)
    for i, (x, g) in enumerate(zip(arrays, seconds, strict=True)):
        for d in directions(x):
            expected = slope(lambda v, i=i: objective(i, v), x, d)
            assert (0.0 if g is None else inner(g.data, d)) == pytest.approx(expected, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("name", SINGLE)
def test_not_differentiable(name):
    result, expected = SINGLE[name]()
    np.testing.assert_array_equal(result.data, expected)
    assert not result.requires_grad


@pytest.mark.parametrize(
    ("f", "second"),
    [
        (lambda x: xp.exp(x), np.exp), (lambda x: xp.sin(x), lambda x: -np.sin(x)), (lambda x: x**3, lambda x: 6 * x),
        (lambda x: xp.tanh(x), lambda x: -2 * np.tanh(x) / np.cosh(x) ** 2), (lambda x: 1 / x, lambda x: 2 / x**3),
        (lambda x: xp.sqrt(x), lambda x: -(x**-1.5) / 4), (lambda x: xp.cosh(x), np.cosh),
        (lambda x: xp.abs(x), lambda x: 0 * x),
        (lambda x: x * x * x * x, lambda x: 12 * x**2), (lambda x: xp.sum(x * x) * x, None),
    ],
)  # fmt: skip
def test_second_derivatives_have_their_closed_form(f, second):
    x = leaf([0.5, 1.5, 2.5])
    (first,) = grad([xp.sum(f(x))], [x], create_graph=True)
    (found,) = grad([xp.sum(first)], [x])
    # The last is not elementwise: sum_k x_k^2 * sum_k x_k has the Hessian 2 I s + 2 x 1' + 2 1 x'.
    expected = second(x.data) if second else 2 * x.data.sum() + 6 * x.data + 2 * x.data.sum()
    np.testing.assert_allclose(found.data, expected, rtol=1e-13)


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_any_order(order):
    x = leaf([0.5, 2.0])
    y = xp.exp(2 * x)
    for _ in range(order):
        (y,) = grad([xp.sum(y)], [x], create_graph=True)
    np.testing.assert_allclose(y.data, 2.0**order * np.exp(2 * x.data), rtol=1e-14)


def test_ties_of_the_maximum_share():
    x = leaf([1.0, 3.0, 3.0])
    assert grad([xp.max(x)], [x])[0].data.tolist() == [0, 0.5, 0.5]


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "complex128", "complex64"])
def test_dtypes_are_kept(dtype):
    x, y = leaf(REAL, dtype), leaf(OTHER, dtype)
    z = xp.mean(xp.tanh(x @ y.mT) * np.float64(2) + 1)
    assert z.dtype == dtype
    assert [g.dtype for g in grad([z], [x, y], [xp.ones_like(z)])] == [np.dtype(dtype)] * 2


def test_sums_and_products_of_float16_are_accumulated_in_float32():
    x = Tensor(np.full((1, 5000), 0.1, np.float16))
    ones = xp.ones_like(x)
    exact = np.float16(x.data.astype(float).sum())
    assert xp.sum(x).data == (x @ ones.mT).data[0, 0] == exact


def test_a_cast_can_be_differentiated_twice():
    x = leaf([2.0], np.float32)
    (first,) = grad([xp.astype(x, "float64") ** 3], [x], create_graph=True)
    (second,) = grad([first], [x])
    assert (first.dtype, second.dtype, second.data.tolist()) == (np.float32, np.float32, [12])


def test_broadcast_gradients_of_empty_arrays():
    x, y = leaf(np.zeros((0, 3))), leaf(np.ones((1, 3)))
    assert values(grad([xp.sum(x * y)], [x, y])) == [[], [[0, 0, 0]]]


def test_operations_and_dtypes_are_in_the_namespace():
    assert set(OPERATIONS) | set(DTYPES) <= set(vars(xp))
