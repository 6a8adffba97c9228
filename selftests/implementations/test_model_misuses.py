"""The NumPy model refuses every misuse, and accepts its right twin."""

# The methods of a Function have parameters that not each of them uses.
# ruff: noqa: ARG001, ARG005

from __future__ import annotations

import re
from types import SimpleNamespace

import numpy as np
import pytest

from autograd_conformance.reference import model
from autograd_conformance.reference.model import ContractError, Function, grad, once_differentiable
from autograd_conformance.reference.model_namespace import xp
from autograd_conformance.reference.model_tensors import Tensor, switched
from autograd_conformance.selftests.implementations.model_functions import (
    custom,
    double_in_place,
    doubled,
    identity,
    leaf,
    save_input,
    square,
)


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
