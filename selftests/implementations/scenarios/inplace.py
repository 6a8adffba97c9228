"""Scenarios of tensors that are changed in place, and of their views."""

# The methods of a Function have parameters that not each of them uses.
# ruff: noqa: ARG005

from __future__ import annotations

import numpy as np

from autograd_conformance.selftests.implementations.model_functions import double_in_place
from autograd_conformance.selftests.implementations.scenarios.bench import doubled, non_leaf, times, under_no_grad


def changing_view(b, make, change):
    def f(x):
        base = x * 1
        view = make(base)
        change(view, base)
        return base * 1, view * 1

    return b.gradients(f, b.array(np.arange(1.0, 5.0)))


def plus(x):
    x += 1


def leaf_changed(b, change):
    return b.gradients(lambda x: (change(x), x * 1)[1], b.array([1.0, 2.0]))


def custom_view(b, slicing=lambda x: x[:2]):
    return b.custom(lambda ctx, x: slicing(x), lambda ctx, g: b.xp.concat([g, 0 * g]))


def versions(b):
    x = b.array([1.0, 2.0])
    before = b.i.version(x)
    y = b.custom(lambda ctx, x: (ctx.mark_dirty(x), x)[1])(x)
    return y is x, b.i.version(x) - before


IN_PLACE = {
    "non-leaf": lambda b: non_leaf(b, doubled(b)),
    "leaf": lambda b: b.gradients(doubled(b), b.array([1.0])),
    "view of a leaf": lambda b: b.gradients(lambda x: doubled(b)(x[:1]), b.array([1.0, 2.0])),
    "tensor without history": lambda b: doubled(b)(b.array([1.0, 2.0])),
    "version": versions,
    "not returned": lambda b: non_leaf(b, b.custom(lambda ctx, x: double_in_place(ctx, x) * 1, lambda ctx, g: g)),
    "not returned, unrecorded": lambda b: b.custom(lambda ctx, x: double_in_place(ctx, x) * 1)(b.array([1.0])),
    "number marked": lambda b: b.custom(lambda ctx, x: (ctx.mark_dirty(5), x * 1)[1])(b.array([1.0])),
    "marked in setup_context": lambda b: non_leaf(
        b,
        b.custom(
            lambda x: (times(x, 2), x)[1],
            lambda ctx, g: g * ctx.saved_tensors[0],
            setup=lambda ctx, i, o: (ctx.mark_dirty(*i), ctx.save_for_backward(o)),
        ),
    ),
    "saved after the change": lambda b: non_leaf(
        b,
        b.custom(
            lambda ctx, x: (double_in_place(ctx, x), ctx.save_for_backward(x), x)[2],
            lambda ctx, g: g * ctx.saved_tensors[0],
        ),
    ),
    "saved before marking": lambda b: non_leaf(
        b,
        b.custom(
            lambda ctx, x: (times(x, 2), ctx.save_for_backward(x), ctx.mark_dirty(x), x)[3],
            lambda ctx, g: g * ctx.saved_tensors[0],
        ),
    ),
    "joins the graph": lambda b: b.gradients(
        lambda x, y: b.custom(lambda ctx, x, y: (times(x, y), ctx.mark_dirty(x), x)[2], lambda ctx, g: (g, 5 * g))(
            x, y
        ),
        b.array([1.0]),
        b.array([2.0]),
        track=[False, True],
    ),
    "view": lambda b: changing_view(b, lambda x: x[1:3], lambda v, _: doubled(b)(v)),
    "view of a view": lambda b: changing_view(b, lambda x: b.xp.reshape(x, (2, 2))[1], lambda v, _: doubled(b)(v)),
    "view and another output": lambda b: changing_view(
        b,
        lambda x: x[:2],
        lambda v, _: b.custom(lambda ctx, x: (double_in_place(ctx, x), x * 1), lambda ctx, g, h: 2 * g + h)(v),
    ),
    "base": lambda b: changing_view(b, lambda x: x[:2], lambda _, x: doubled(b)(x)),
    "view by an operator": lambda b: changing_view(b, lambda x: x[:2], lambda v, _: times(v)),
    "base by an operator": lambda b: changing_view(b, lambda x: x[:2], lambda _, x: times(x)),
    "base and view": lambda b: changing_view(b, lambda x: x[:3], lambda v, x: (times(v), doubled(b)(x), plus(v))),
    "leaf by an operator": lambda b: leaf_changed(b, plus),
    "leaf under no_grad": lambda b: leaf_changed(b, lambda x: under_no_grad(b, plus, x)),
    "fresh output": lambda b: b.gradients(
        lambda x: (lambda y: (times(y), y)[1])(b.custom(lambda ctx, x: x * 1, lambda ctx, g: 2 * g)(x)), b.array([1.0])
    ),
    "output view": lambda b: changing_view(b, custom_view(b), lambda v, _: plus(v)),
    "output view of a temporary": lambda b: changing_view(
        b, custom_view(b, lambda x: (x * 2)[:2]), lambda v, _: plus(v)
    ),
    "base of an output view": lambda b: changing_view(b, custom_view(b), lambda _, x: plus(x)),
    "output view, unchanged": lambda b: changing_view(b, custom_view(b), lambda *_: None),
    "by itself": lambda b: non_leaf(b, lambda z: (times(z, z), z)[1]),
    "by a larger tensor": lambda b: plus(b.array([1.0])) or times(b.array([1.0]), b.array([1.0, 2.0])),
}
