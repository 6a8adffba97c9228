"""The NumPy model of the contract: what a Function, its ctx and the engine do."""

# The methods of a Function have parameters that not each of them uses.
# ruff: noqa: ARG001, ARG005

from __future__ import annotations

import gc
import threading
import weakref

import numpy as np
import pytest

from autograd_conformance.reference import model
from autograd_conformance.reference.model import grad, once_differentiable
from autograd_conformance.reference.model_namespace import xp
from autograd_conformance.reference.model_tensors import Tensor, switched
from autograd_conformance.selftests.implementations.model_functions import (
    custom,
    doubled,
    identity,
    leaf,
    save_input,
    square,
    values,
)


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


@pytest.mark.parametrize("step", [identity.apply, lambda y: y + 1.0], ids=["Function", "operation"])
def test_a_long_chain_is_differentiated_and_freed_on_a_small_stack(step):
    def chained():
        y = x = leaf([1.0])
        for _ in range(50_000):
            y = step(y)
        nodes.append(weakref.ref(y.grad_fn))
        gradients.append(values(grad([y], [x])))

    nodes, gradients = [], []
    before = threading.stack_size(2**18)
    try:
        thread = threading.Thread(target=chained)
        thread.start()
    finally:
        threading.stack_size(before)
    thread.join()
    assert gradients == [[[1]]]
    assert nodes[0]() is None


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
