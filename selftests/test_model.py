"""The NumPy model of the contract: its derivatives against differences, and every misuse beside its right twin."""

# The methods of a Function have parameters that not each of them uses.
# ruff: noqa: ARG001, ARG005

from __future__ import annotations

import gc
import re
import threading
import weakref
from types import SimpleNamespace

import numpy as np
import pytest

from autograd_conformance.reference import model
from autograd_conformance.reference.model import ContractError, Function, grad, once_differentiable
from autograd_conformance.reference.model_namespace import DTYPES, OPERATIONS, Tensor, switched, xp
from autograd_conformance.reference.namespace import ARRAY_NAMES, EXTRA_NAMES

REAL = np.array([[0.7, -1.3, 2.1], [0.4, 1.9, -0.6]])
OTHER = np.array([[1.1, 0.3, -0.8], [2.2, -1.7, 0.9]])
COMPLEX = REAL + 1j * OTHER
ORDER = np.array([[2, 0], [1, 1]])
POSITIONS = np.array([[0, 1, 0], [2, 0, 2]])


def leaf(values, dtype=None):
    return Tensor(np.array(values, dtype)).requires_grad_()


def custom(forward, backward=None, *, setup=None, jvp=None, name="Custom"):
    """A Function of the given methods."""
    methods = {"forward": forward, "backward": backward, "setup_context": setup, "jvp": jvp}
    return type(name, (Function,), {key: staticmethod(f) for key, f in methods.items() if f is not None})


def values(tensors):
    return [None if t is None else t.data.tolist() for t in tensors]


# --- the namespace ---------------------------------------------------------------------------------------------------

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


# --- Functions: what holds -------------------------------------------------------------------------------------------

identity = custom(lambda ctx, x: xp.copy(x), lambda ctx, g: g)


def save_input(ctx, x):
    ctx.save_for_backward(x)
    return x * x


square = custom(save_input, lambda ctx, g: 2 * g * ctx.saved_tensors[0])


def double_in_place(ctx, x):
    x *= 2
    ctx.mark_dirty(x)
    return x


doubled = custom(double_in_place, lambda ctx, g: 2 * g)


def test_outputs_share_the_ctx_as_node_and_other_values_pass_through():
    marker = object()
    seen = []
    f = custom(lambda ctx, x, k: (seen.append(ctx), x * k, marker, -x)[1:], lambda ctx, g, none, h: (2 * g - h, None))
    x = leaf([1.0, 2.0])
    y, other, z = f.apply(x, 2)
    assert other is marker
    assert y.grad_fn is z.grad_fn is seen[0]
    assert (y.index, z.index) == (0, 2)
    assert values(grad([y, z], [x], [xp.ones_like(y), 3 * xp.ones_like(z)])) == [[-1, -1]]


@pytest.mark.parametrize("output", ["bare", "single", "pair", "list"])
def test_the_form_of_the_output_is_kept(output):
    forms = {"bare": lambda y: y, "single": lambda y: (y,), "pair": lambda y: (y, y + 1), "list": lambda y: [y]}
    result = custom(lambda ctx, x: forms[output](x * 2)).apply(leaf([1.0]))
    assert type(result) is {"bare": Tensor, "list": list}.get(output, tuple)
    tensors = result if isinstance(result, (tuple, list)) else [result]
    assert [t.requires_grad for t in tensors] == [output != "list"] * len(tensors)


def test_forward_is_unrecorded_and_the_mode_is_restored_after_an_error():
    def forward(ctx, x):
        assert not (x * 2).requires_grad
        with switched(recording=True):
            return (x * 5, KeyError)[ctx.needs_input_grad.index(True)]

    x = leaf([1.0])
    assert values(grad([custom(forward, lambda ctx, g: g * 7).apply(x)], [x])) == [[7]]
    with pytest.raises(KeyError):
        custom(lambda ctx, x: {}[x]).apply(x)
    assert model.mode.recording


def test_needs_input_grad_counts_passed_arguments_and_binds_defaults_with_setup_context():
    seen = []
    combined = custom(lambda ctx, x, b=None, c=2: (seen.append(ctx.needs_input_grad), x * 1)[1])
    separate = custom(
        lambda x, b=None, c=2: x * 1, setup=lambda ctx, inputs, _: seen.append((inputs[1:], ctx.needs_input_grad))
    )
    x = leaf([1.0])
    combined.apply(x)
    combined.apply(x, Tensor(np.ones(1)), 3)
    separate.apply(x)
    with switched(recording=False):
        assert not combined.apply(x, c=4).requires_grad
    assert seen == [(True,), (True, False, False), ((None, 2), (True, False, False)), (True, False, False)]


@pytest.mark.parametrize("materialize", [True, False])
def test_unused_and_non_differentiable_outputs_get_zeros_or_none(materialize):
    seen = []

    def forward(ctx, x):
        y, constant, number = x * 2, x * 3, xp.argmax(x, axis=0)
        ctx.mark_non_differentiable(constant)
        ctx.set_materialize_grads(materialize)
        return y, constant, number, x * 4

    x = leaf([1.0, 2.0])
    outputs = custom(forward, lambda ctx, *gs: (seen.append(gs), gs[0])[1]).apply(x)
    assert [y.requires_grad for y in outputs] == [True, False, False, True]
    grad([outputs[0]], [x], [xp.ones_like(x)])
    assert values(seen[0]) == [[1, 1], *([[0, 0], 0, [0, 0]] if materialize else [None] * 3)]
    assert seen[0][2] is None or seen[0][2].dtype.kind == "i"


def test_each_node_runs_once_after_its_cotangents_are_summed_and_only_if_needed():
    log = []
    first = custom(lambda ctx, x: x * 1, lambda ctx, g: (log.append(g.data.tolist()), g)[1])
    x, w = leaf([1.0]), leaf([1.0])
    y = first.apply(x)
    z = first.apply(w)
    assert values(grad([y * 3 + y * z + y], [x])) == [[5]]
    assert log == [[5]]


def test_gradients_are_reduced_and_cast():
    f = custom(lambda ctx, x, y: x * y, lambda ctx, g: (xp.ones_like(Tensor(np.ones((5, 2, 3)))), xp.ones_like(g) * 1j))
    x, y = leaf(np.ones((1, 3)), np.float32), leaf(np.ones(3), np.complex64)
    gx, gy = grad([f.apply(x, y)], [x, y], [Tensor(np.ones((1, 3), np.complex64))])
    assert (gx.dtype, gx.data.tolist()) == (np.float32, [[10, 10, 10]])
    assert (gy.dtype, gy.data.tolist()) == (np.complex64, [1j] * 3)


def test_the_same_tensor_passed_twice_gets_the_sum():
    x = leaf([1.0])
    assert values(grad([custom(lambda ctx, a, b: a + b, lambda ctx, g: (2 * g, 3 * g)).apply(x, x)], [x])) == [[5]]


def test_a_saved_output_can_be_differentiated_again_without_a_cycle():
    def forward(ctx, x):
        y = xp.exp(x)
        ctx.save_for_backward(y, None, x)
        return y

    def backward(ctx, g):
        y, nothing, x = ctx.saved_tensors
        assert nothing is None
        assert x is leaf_
        return g * y

    leaf_ = leaf([0.5])
    gc.disable()
    try:
        y = custom(forward, backward).apply(leaf_)
        (g,) = grad([y], [leaf_], create_graph=True)
        assert values(grad([g], [leaf_], retain_graph=True)) == [[np.exp(0.5)]]
        alive = weakref.ref(y)
        del y, g
        assert alive() is None
    finally:
        gc.enable()


def test_saved_tensors_are_released_before_earlier_nodes_run():
    alive = []

    def forward(ctx, x):
        kept = x * 3
        alive.append(weakref.ref(kept))
        ctx.save_for_backward(kept)
        return x * 1

    before = custom(lambda ctx, x: x * 1, lambda ctx, g: (alive.append(alive[0]()), g)[1])
    x = leaf([1.0])
    grad([custom(forward, lambda ctx, g: g * ctx.saved_tensors[0]).apply(before.apply(x))], [x])
    assert alive[1] is None


def test_an_intermediate_has_no_history_and_an_inner_call_in_backward_has():
    cube_backward = custom(
        lambda ctx, g, x: (ctx.save_for_backward(g, x), 3 * g * x * x)[1],
        lambda ctx, v: (lambda g, x: (3 * v * x * x, 6 * v * g * x))(*ctx.saved_tensors),
    )
    cube = custom(
        lambda ctx, x: (ctx.save_for_backward(x), x**3)[1], lambda ctx, g: cube_backward.apply(g, *ctx.saved_tensors)
    )
    lost = custom(lambda ctx, x: (ctx.save_for_backward(3 * x * x), x**3)[1], lambda ctx, g: g * ctx.saved_tensors[0])
    x = leaf([2.0])
    (first,) = grad([cube.apply(x)], [x], create_graph=True)
    assert values(grad([first], [x])) == [[12]]
    assert not grad([lost.apply(x)], [x], create_graph=True)[0].requires_grad


def test_an_input_returned_as_it_is_becomes_a_fresh_view():
    x = leaf([1.0])
    y = custom(lambda ctx, x: x, lambda ctx, g: 7 * g).apply(x)
    assert y is not x
    assert y.storage is x.storage
    assert values(grad([y], [x])) == [[7]]


def test_an_in_place_function_returns_the_input_with_a_new_history():
    a = leaf([1.0, 2.0, 3.0])
    z = a * 1
    version = z.storage.version
    assert doubled.apply(z) is z
    assert z.storage.version > version
    assert values(grad([xp.sum(z)], [a])) == [[2, 2, 2]]


def test_an_in_place_change_of_a_view_reaches_the_base_and_its_other_views():
    a = leaf([1.0, 2.0, 3.0, 4.0])
    base = a * 1
    other, nested = base[1:], xp.reshape(base, (2, 2))[0]
    doubled.apply(nested)
    nested *= 5
    assert other.data.tolist() == [20, 3, 4]
    gradients = [grad([xp.sum(t)], [a], retain_graph=True)[0].data.tolist() for t in (base, other, nested)]
    assert gradients == [[10, 10, 1, 1], [0, 10, 1, 1], [10, 10, 0, 0]]


def test_a_tensor_without_history_joins_the_graph_when_changed_by_one_that_has():
    x, y = Tensor(np.ones(2)), leaf([3.0, 4.0])
    x += y * 2
    assert values(grad([xp.sum(x)], [y])) == [[2, 2]]


def test_backward_adds_to_leaves_only_and_never_aliases():
    x, w = leaf([1.0]), leaf([2.0])
    y = identity.apply(x + w)
    model.backward([y], [Tensor(np.ones(1))], retain_graph=True)
    assert x.grad.storage is not w.grad.storage
    model.backward([y], [Tensor(np.ones(1))])
    assert values([x.grad, w.grad]) == [[2], [2]]
    assert y.grad is None


def test_an_in_place_function_makes_no_cycle():
    x = leaf([1.0])
    gc.disable()
    try:
        y = doubled.apply(x * 1)
        grad([y], [x])
        alive = weakref.ref(y)
        del y
        assert alive() is None
    finally:
        gc.enable()


def test_once_differentiable_leaves_the_first_derivative_alone():
    modes = []
    once = custom(
        save_input,
        once_differentiable(lambda ctx, g: (modes.append(model.mode.recording), 2 * g * ctx.saved_tensors[0])[1]),
    )
    x = leaf([3.0])
    assert values(grad([once.apply(x)], [x], create_graph=True)) == [[6]]
    assert modes == [False]


def test_the_mode_belongs_to_the_thread():
    seen = []

    def work():
        x = leaf([2.0])
        seen.append(values(grad([square.apply(x)], [x])))

    with switched(recording=False):
        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert seen == [[[4.0]]] * 8


def test_a_long_chain():
    y = x = leaf([1.0])
    for _ in range(50_000):
        y = identity.apply(y)
    assert values(grad([y], [x])) == [[1]]


def test_forward_mode_runs_the_functions_own_rule():
    given = []

    def forward(ctx, x, k, y, n):
        ctx.save_for_forward(x)
        return x * k, n + 1

    def jvp(ctx, *tangents):
        given.append(values(tangents))
        return tangents[0] * 3 + ctx.saved_tensors[0], None

    f = custom(forward, jvp=jvp).apply
    x, y, n = Tensor(np.ones(2)), Tensor(np.ones(2)), Tensor(np.arange(2))
    outputs, tangents = model.jvp(lambda x, y, n: f(x, 3, y, n), [x, y, n], [Tensor(np.ones(2)), None, None])
    assert given == [[[1, 1], None, [0, 0], None]]
    assert (values(outputs), values(tangents)) == ([[3, 3], [1, 2]], [[4, 4], None])
    f(x, 3, y, n)
    assert len(given) == 1


# --- misuses and their right twins -----------------------------------------------------------------------------------


def run(f, *args, cotangent=None, create_graph=False):
    """Forward and backward, gradients of the first argument."""
    y = f.apply(*args)
    y = y[0] if isinstance(y, tuple) else y
    return grad([y], args[:1], [xp.ones_like(y) if cotangent is None else cotangent], create_graph=create_graph)


def returning(*gradients):
    """A Function of any number of arguments whose backward returns what each of these makes of the cotangent."""
    made = [g if callable(g) else lambda _, g=g: g for g in gradients]
    return custom(lambda ctx, x, *_: x * 1, lambda ctx, g: tuple(m(g) for m in made) if len(made) != 1 else made[0](g))


def same(g):
    return g


def saving(*things):
    return custom(lambda ctx, x: (ctx.save_for_backward(*things), x * 1)[1], lambda ctx, g: g)


def marking(method, *things):
    return custom(lambda ctx, x: (getattr(ctx, method)(*things), x * 1)[1], lambda ctx, g: g)


def changed_after(f, change):
    x = leaf([1.0, 2.0])
    z = x * 1
    y = f(z)
    change(z)
    return grad([y], [x], [xp.ones_like(y)])


def bump(t):
    with switched(recording=False):
        t *= 2


def twice(f, retain):
    x = leaf([2.0])
    y = f.apply(x)
    grad([y], [x], retain_graph=retain)
    return grad([y], [x])


def again(f, **kwargs):
    """Differentiate twice, by what the issue tracker calls a Hessian-vector product, mixed with another term."""
    x = leaf([2.0])
    (g,) = grad([f.apply(x) + x**3], [x], create_graph=True)
    return grad([g], [x], **kwargs)


def save_then_change(ctx, x):
    ctx.save_for_backward(x)
    return double_in_place(ctx, x)


def change_then_save(ctx, x):
    x *= 2
    ctx.save_for_backward(x)
    ctx.mark_dirty(x)
    return x


def times_saved(ctx, g):
    return g * ctx.saved_tensors[0]


def view_changed(f, change):
    a = leaf(np.ones(4))
    b = a * 1
    y = f(b)
    change(y, b)
    return grad([xp.sum(y)], [a])


def plus(t, other=1):
    t += other


def view_recorded(ctx, x):
    with switched(recording=True):
        return x[:2]


def dual(forward, rule, tangent=1.0):
    x = Tensor(np.ones(2))
    return model.jvp(custom(forward, jvp=rule).apply, [x], [Tensor(np.full(2, tangent))])


def double_tangent(_, t):
    t *= 2
    return t


def both(name):
    return type("Both", (Function,), {"forward": save_input, **dict.fromkeys(name, staticmethod(lambda ctx, g: g))})


once = custom(save_input, once_differentiable(lambda ctx, g: 2 * g * ctx.saved_tensors[0]), name="Once")
view_function = custom(lambda ctx, x: x[:2], lambda ctx, g: xp.concat([g, 0 * g]))
recorded_view = custom(view_recorded, lambda ctx, g: xp.concat([g, 0 * g]))
two_tensors = custom(lambda ctx, x: (double_in_place(ctx, x), x + 1), lambda ctx, g, _: 2 * g)
marked_not_returned = custom(lambda ctx, x: xp.copy(double_in_place(ctx, x)), lambda ctx, g: 2 * g)
as_is = SimpleNamespace(
    saved=custom(lambda x: x, lambda ctx, g: g, setup=lambda ctx, inputs, output: ctx.save_for_backward(output)),
    unsaved=custom(lambda x: x, lambda ctx, g: g, setup=lambda ctx, inputs, output: None),
)

R, C = [1.0, 2.0], [1.0 + 1j, 2.0]
# name: (misuse, error, words of its message, right twin)
MISUSES = {
    "fewer gradients": (
        lambda: run(returning(same), leaf(R), leaf(R)),
        ContractError,
        "expected 2, got 1",
        lambda: run(returning(same, same), leaf(R), leaf(R)),
    ),
    "more gradients": (
        lambda: run(returning(same, same), leaf(R)),
        ContractError,
        "expected 1, got 2",
        lambda: run(returning(same, None, None), leaf(R)),
    ),
    "gradient of a number": (
        lambda: run(returning(same, same), leaf(R), 2),
        ContractError,
        "argument 1 must be None",
        lambda: run(returning(same, None), leaf(R), 2),
    ),
    "list of gradients": (
        lambda: run(returning(lambda g: [g]), leaf(R)),
        ContractError,
        "argument 0.*list",
        lambda: run(returning(lambda g: (g,)), leaf(R)),
    ),
    "float as gradient": (
        lambda: run(returning(1.0), leaf(R)),
        ContractError,
        "argument 0.*float",
        lambda: run(returning(lambda g: 1.0 * g), leaf(R)),
    ),
    "array as gradient": (
        lambda: run(returning(lambda g: g.data), leaf(R)),
        ContractError,
        "argument 0.*ndarray",
        lambda: run(returning(lambda g: xp.from_numpy(g.data, g)), leaf(R)),
    ),
    "longer gradient": (
        lambda: run(returning(lambda g: xp.concat([g, g])), leaf(R)),
        ContractError,
        r"\(4,\).*\(2,\)",
        lambda: run(returning(lambda g: xp.stack([g, g])), leaf(R)),
    ),
    "smaller gradient": (
        lambda: run(returning(lambda g: g[:1]), leaf(R)),
        ContractError,
        r"\(1,\).*\(2,\)",
        lambda: run(returning(lambda g: xp.broadcast_to(g[:1], (2,))), leaf(R)),
    ),
    "scalar gradient": (
        lambda: run(returning(xp.sum), leaf(R)),
        ContractError,
        r"\(\).*\(2,\)",
        lambda: run(returning(xp.sum), leaf(1.0)),
    ),
    "shape of an unneeded gradient": (
        lambda: run(returning(same, xp.sum), leaf(R), leaf(R)),
        ContractError,
        "argument 1",
        lambda: run(returning(same, xp.sum), leaf(R), Tensor(np.ones(2))),
    ),
    "complex gradient": (
        lambda: run(returning(lambda g: g * 1j), leaf(R)),
        ContractError,
        "complex",
        lambda: run(returning(lambda g: g * 1j), leaf(C)),
    ),
    "None as only gradient": (
        lambda: run(returning(None), leaf(R)),
        ContractError,
        "allow_unused",
        lambda: run(returning(None, same), x := leaf(R), x),
    ),
    "saved number": (lambda: run(saving(1), leaf(R)), TypeError, "argument 0", lambda: run(saving(None), leaf(R))),
    "saved tuple": (
        lambda: run(saving(None, (leaf(R),)), leaf(R)),
        TypeError,
        "argument 1",
        lambda: run(saving(leaf(R)), leaf(R)),
    ),
    "saved input changed": (
        lambda: changed_after(square.apply, bump),
        ContractError,
        "inplace",
        lambda: changed_after(identity.apply, bump),
    ),
    "saved input changed through a view": (
        lambda: changed_after(square.apply, lambda z: bump(z.detach()[:1])),
        ContractError,
        "inplace",
        lambda: changed_after(square.apply, lambda z: bump(z + 0)),
    ),
    "operand changed": (
        lambda: changed_after(lambda z: z * z, doubled.apply),
        ContractError,
        "inplace",
        lambda: changed_after(lambda z: z + z, doubled.apply),
    ),
    "saved, then changed in forward": (
        lambda: view_changed(custom(save_then_change, times_saved).apply, lambda *_: None),
        ContractError,
        "inplace",
        lambda: view_changed(custom(change_then_save, times_saved).apply, lambda *_: None),
    ),
    "second backward": (
        lambda: twice(square, retain=False),
        ContractError,
        "second time",
        lambda: twice(square, retain=True),
    ),
    "second backward of an operation": (
        lambda: twice(SimpleNamespace(apply=lambda x: x * x), False),
        ContractError,
        "second time",
        lambda: twice(identity, False),
    ),
    "materialize by a number": (
        lambda: run(marking("set_materialize_grads", 1), leaf(R)),
        TypeError,
        "bool",
        lambda: run(marking("set_materialize_grads", False), leaf(R)),
    ),
    "mark a number non-differentiable": (
        lambda: run(marking("mark_non_differentiable", 5), leaf(R)),
        ContractError,
        "argument 0",
        lambda: run(marking("mark_non_differentiable", leaf(R)), leaf(R)),
    ),
    "mark a number dirty": (
        lambda: run(marking("mark_dirty", 5), leaf(R)),
        ContractError,
        "argument 0",
        lambda: run(marking("mark_dirty"), leaf(R)),
    ),
    "dirty leaf": (lambda: doubled.apply(leaf(R)), ContractError, "leaf", lambda: doubled.apply(leaf(R) * 1)),
    "dirty view of a leaf": (
        lambda: doubled.apply(leaf(R)[:1]),
        ContractError,
        "leaf",
        lambda: doubled.apply((leaf(R) * 1)[:1]),
    ),
    "in-place on a leaf": (lambda: plus(leaf(R)), ContractError, "leaf", lambda: bump(leaf(R))),
    "dirty and not returned": (
        lambda: marked_not_returned.apply(leaf(R) * 1),
        ContractError,
        "not returned",
        lambda: doubled.apply(leaf(R) * 1),
    ),
    "dirty view, two outputs": (
        lambda: two_tensors.apply((leaf(R) * 1)[:1]),
        ContractError,
        "only one",
        lambda: two_tensors.apply(leaf(R) * 1),
    ),
    "output view changed": (
        lambda: view_changed(view_function.apply, lambda y, b: plus(y)),
        ContractError,
        "inplace",
        lambda: view_changed(lambda b: b[:2], lambda y, b: plus(y)),
    ),
    "output view made recorded changed": (
        lambda: view_changed(recorded_view.apply, lambda y, b: plus(y)),
        ContractError,
        "inplace",
        lambda: view_changed(recorded_view.apply, lambda y, b: None),
    ),
    "complex into a real tensor": (
        lambda: plus(Tensor(np.ones(2)), 1j),
        TypeError,
        "complex",
        lambda: plus(Tensor(np.ones(2, complex)), 1j),
    ),
    "base of an output view changed": (
        lambda: view_changed(view_function.apply, lambda y, b: plus(b)),
        ContractError,
        "inplace",
        lambda: view_changed(lambda b: b[:2], lambda y, b: plus(b)),
    ),
    "as-is output saved in setup_context": (
        lambda: run(as_is.saved, leaf(R)),
        ContractError,
        "as it is",
        lambda: run(as_is.unsaved, leaf(R)),
    ),
    "no forward": (lambda: Function.apply(leaf(R)), NotImplementedError, "forward", lambda: identity.apply(leaf(R))),
    "no backward": (lambda: run(both(()), leaf(R)), NotImplementedError, "backward", lambda: both(()).apply(leaf(R))),
    "backward and vjp": (
        lambda: run(both(("backward", "vjp")), leaf(R)),
        ContractError,
        "both",
        lambda: run(both(("vjp",)), leaf(R)),
    ),
    "unknown keyword": (lambda: identity.apply(leaf(R), zz=1), TypeError, "zz", lambda: run(identity, leaf(R))),
    "differentiated twice": (lambda: again(once), ContractError, "once_differentiable", lambda: again(square)),
    "differentiated twice, unused allowed": (
        lambda: again(once, allow_unused=True),
        ContractError,
        "once_differentiable",
        lambda: again(square, allow_unused=True),
    ),
    "no gradient required": (
        lambda: grad([xp.sum(Tensor(np.ones(2)))], [leaf(R)]),
        ContractError,
        "output 0",
        lambda: grad([xp.sum(x := leaf(R))], [x]),
    ),
    "with respect to a constant": (
        lambda: grad([xp.sum(leaf(R))], [Tensor(np.ones(2))]),
        ContractError,
        "input 0",
        lambda: grad([xp.sum(x := leaf(R))], [x]),
    ),
    "unused input": (
        lambda: grad([xp.sum(leaf(R))], [leaf(R)]),
        ContractError,
        "allow_unused",
        lambda: grad([xp.sum(leaf(R))], [leaf(R)], allow_unused=True),
    ),
    "no cotangent": (
        lambda: grad([(x := leaf(R)) * 1], [x]),
        ContractError,
        "scalar",
        lambda: grad([xp.sum(x := leaf(R))], [x]),
    ),
    "cotangent of another shape": (
        lambda: run(identity, leaf(R), cotangent=Tensor(np.array(True))),
        ContractError,
        "shape",
        lambda: run(identity, leaf(R), cotangent=Tensor(np.ones(2, bool))),
    ),
    "cotangents surplus": (
        lambda: grad([xp.sum(x := leaf(R))], [x], [None, None]),
        ContractError,
        "1, got 2",
        lambda: grad([xp.sum(x := leaf(R))], [x], [None]),
    ),
    "integer leaf": (
        lambda: Tensor(np.arange(2)).requires_grad_(),
        ContractError,
        "int64",
        lambda: leaf(R).requires_grad_(),
    ),
    "exponent": (lambda: leaf(R) ** leaf(R), TypeError, "exponent", lambda: leaf(R) ** 2.5),
    "no jvp": (
        lambda: dual(lambda ctx, x: x * 1, None),
        NotImplementedError,
        "jvp",
        lambda: dual(lambda ctx, x: x * 1, lambda _, t: t * 1),
    ),
    "fewer tangents": (
        lambda: dual(lambda ctx, x: (x * 1, x * 2), lambda _, t: (t,)),
        ContractError,
        "1 tangents, expected 2",
        lambda: dual(lambda ctx, x: (x * 1, x * 2), lambda _, t: (t, None)),
    ),
    "tangent of a number": (
        lambda: dual(lambda ctx, x: (x * 1, 2), lambda _, t: (t, t)),
        ContractError,
        "output 1",
        lambda: dual(lambda ctx, x: (x * 1, 2), lambda _, t: (t, None)),
    ),
    "tangent of another shape": (
        lambda: dual(lambda ctx, x: x * 1, lambda _, t: t[:1]),
        ContractError,
        "shape",
        lambda: dual(lambda ctx, x: x[:1], lambda _, t: t[:1]),
    ),
    "tangent of a view": (
        lambda: dual(lambda ctx, x: x[:1], lambda _, t: t[:1] * 1),
        ContractError,
        "memory",
        lambda: dual(lambda ctx, x: x[:1], lambda _, t: t[:1]),
    ),
    "tangent of a dirty input": (
        lambda: dual(double_in_place, lambda _, t: 2 * t),
        ContractError,
        "memory",
        lambda: dual(double_in_place, double_tangent),
    ),
    "forward mode of an operation": (
        lambda: model.jvp(xp.sin, [Tensor(np.ones(2))], [Tensor(np.ones(2))]),
        ContractError,
        "sin",
        lambda: model.jvp(xp.sin, [Tensor(np.ones(2))], [None]),
    ),
}


@pytest.mark.parametrize("name", MISUSES)
def test_misuse_is_refused_and_its_twin_is_not(name):
    misuse, error, words, right = MISUSES[name]
    with pytest.raises(error) as refusal:
        misuse()
    assert type(refusal.value) is error
    assert re.search(words, str(refusal.value))
    right()


def test_marking_another_tensor_dirty_warns():
    with pytest.warns(UserWarning, match="not an input"):
        custom(lambda ctx, x: (lambda y: (ctx.mark_dirty(y), y)[1])(x * 1), same).apply(leaf(R))


def test_operations_and_dtypes_are_in_the_namespace():
    assert set(OPERATIONS) | set(DTYPES) <= set(vars(xp))
