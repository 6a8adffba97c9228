"""The model and PyTorch agree: the same bodies, used and misused, give the same values or are both refused.

Left out on purpose are the points where PyTorch departs from its documentation and the model follows it: a
once-differentiable backward differentiated again through ``grad`` or mixed with other terms, which PyTorch lets pass
or refuses for another reason; an input that the same forward saves and then changes, of which PyTorch takes the changed
value; ``jvp`` returning None for a floating output, which PyTorch dies of; keyword-only parameters of ``forward``.
"""

# The methods of a Function have parameters that not each of them uses.
# ruff: noqa: ARG001, ARG005

from __future__ import annotations

import warnings

import numpy as np
import pytest

pytest.importorskip("torch")

from autograd_conformance.implementations.model import ModelImplementation
from autograd_conformance.implementations.torch import TorchImplementation

IMPLEMENTATIONS = [TorchImplementation(), ModelImplementation()]


class Bench:
    """What a scenario works with: one implementation and shorthands."""

    def __init__(self, implementation):
        self.i, self.xp, self.ag = implementation, implementation.xp, implementation.ag

    def array(self, values, dtype="float64"):
        return self.i.array(np.array(values), dtype, "cpu")

    def custom(self, forward, backward=None, *, setup=None, jvp=None, **methods):
        methods |= {"forward": forward, "backward": backward, "setup_context": setup, "jvp": jvp}
        given = {name: staticmethod(f) for name, f in methods.items() if f is not None}
        return self.i.function(type("Custom", (self.ag.Function,), given))

    def ones(self, y):
        return self.array(np.ones(tuple(y.shape)), self.i.describe(y).dtype)

    def gradients(self, f, *primals, track=None):
        """Gradients of the sum of all outputs."""
        outputs, pullback = self.i.vjp(f, primals, track=track)
        return pullback([self.ones(y) if self.i.is_tensor(y) else None for y in outputs if self.i.is_tensor(y)])

    def returning(self, *made, args=None, dtype="float64", track=None):
        """Gradients of a Function whose backward returns what ``made`` makes of the cotangent."""
        f = self.custom(lambda ctx, x, *_: x * 1, lambda ctx, g: tuple(m(g) if callable(m) else m for m in made))
        args = args or [self.array([1.0, 2.0], dtype)]
        return self.gradients(f, *args, track=track)

    def plain(self, value):
        """A value as both implementations can be compared by."""
        if self.i.is_tensor(value):
            return self.i.describe(value), np.round(self.i.numpy(value), 12).tolist()
        return type(value)(map(self.plain, value)) if isinstance(value, (tuple, list)) else value

    def outcome(self, f):
        try:
            return "value", self.plain(f(self))
        except self.i.refusals as refusal:
            return "crash" if "INTERNAL ASSERT" in str(refusal) else "refusal", None


def double_in_place(ctx, x):
    x *= 2
    ctx.mark_dirty(x)
    return x


def save_input(ctx, x):
    ctx.save_for_backward(x)
    return x * x


def times_saved(ctx, g):
    return 2 * g * ctx.saved_tensors[0]


def same(g):
    return g


def square(b):
    return b.custom(save_input, times_saved)


def doubled(b):
    return b.custom(double_in_place, lambda ctx, g: 2 * g)


def non_leaf(b, f, n=3):
    """Gradient of the sum of f's output with respect to the leaf behind its argument."""
    return b.gradients(lambda x: f(x * 1), b.array(np.arange(1.0, n + 1)))


GRADIENTS = {
    "as many": lambda b: b.returning(same, same, args=[b.array([1.0]), b.array([2.0])]),
    "fewer": lambda b: b.returning(same, args=[b.array([1.0]), b.array([2.0])]),
    "trailing None": lambda b: b.returning(same, None, None),
    "trailing tensor": lambda b: b.returning(same, same),
    "trailing False": lambda b: b.returning(same, False),
    "None": lambda b: b.returning(None),
    "float": lambda b: b.returning(1.0),
    "array": lambda b: b.returning(np.ones(2)),
    "list": lambda b: b.returning(lambda g: [g]),
    "expanded": lambda b: b.returning(lambda g: b.xp.stack([g, g])),
    "expanded twice": lambda b: b.returning(lambda g: b.array(np.ones((2, 4, 3))), args=[b.array(np.ones((2, 1, 3)))]),
    "longer": lambda b: b.returning(lambda g: b.xp.concat([g, g])),
    "shorter": lambda b: b.returning(lambda g: g[:1]),
    "scalar": lambda b: b.returning(b.xp.sum),
    "column": lambda b: b.returning(lambda g: g[:, None]),
    "empty": lambda b: b.returning(lambda g: g[:0], args=[b.array([1.0])]),
    "unneeded None": lambda b: b.returning(same, None, args=[b.array([1.0]), b.array([2.0])], track=[True, False]),
    "unneeded shape": lambda b: b.returning(
        same, lambda g: b.array([1.0] * 5), args=[b.array([1.0])] * 2, track=[True, False]
    ),
    "unneeded float": lambda b: b.returning(same, 1.0, args=[b.array([1.0])] * 2, track=[True, False]),
    "needed shape": lambda b: b.returning(same, lambda g: b.array([1.0] * 5), args=[b.array([1.0])] * 2),
    "float32 for float64": lambda b: b.returning(lambda g: b.array([1.0, 2.0], "float32")),
    "float64 for float32": lambda b: b.returning(lambda g: b.array([1.0, 2.0]), dtype="float32"),
    "float64 for float16": lambda b: b.returning(lambda g: b.array([1.0, 2.0]), dtype="float16"),
    "int64": lambda b: b.returning(lambda g: b.array([1, 2], "int64")),
    "bool": lambda b: b.returning(lambda g: b.array([True, False], "bool")),
    "complex for real": lambda b: b.returning(lambda g: b.array([1j, 2.0], "complex128")),
    "real for complex": lambda b: b.returning(lambda g: b.array([1.0, 2.0]), dtype="complex128"),
    "same tensor twice": lambda b: b.gradients(
        lambda x: b.custom(lambda ctx, a, c: a + c, lambda ctx, g: (2 * g, 3 * g))(x, x), b.array([1.0])
    ),
    "argument that is no tensor": lambda b: b.gradients(
        lambda x: b.custom(lambda ctx, x, k: x * k, lambda ctx, g: (2 * g, None))(x, 2), b.array([1.0])
    ),
    "gradient for no tensor": lambda b: b.gradients(
        lambda x: b.custom(lambda ctx, x, k: x * k, lambda ctx, g: (2 * g, g))(x, 2), b.array([1.0])
    ),
}


def saved(b, thing):
    f = b.custom(lambda ctx, x: (ctx.save_for_backward(thing), x * 1)[1], lambda ctx, g: g)
    return b.gradients(f, b.array([1.0]))


def changed_between(b, f):
    """Gradient after the argument of ``f`` was overwritten between forward and backward."""
    kept = []
    _, pullback = b.i.vjp(lambda x: f(kept.append(x * 1) or kept[0]), [b.array([1.0, 2.0])])
    b.i.fill_(kept[0], 5.0)
    return pullback([b.array([1.0, 1.0])])


SAVING = {
    "None": lambda b: saved(b, None),
    "tensor": lambda b: saved(b, b.array([1.0])),
    "number": lambda b: saved(b, 1),
    "string": lambda b: saved(b, "x"),
    "tuple": lambda b: saved(b, (b.array([1.0]),)),
    "array": lambda b: saved(b, np.ones(2)),
    "changed input": lambda b: changed_between(b, square(b)),
    "changed input, not read": lambda b: changed_between(b, b.custom(save_input, lambda ctx, g: g)),
    "changed input, on ctx": lambda b: changed_between(
        b, b.custom(lambda ctx, x: (setattr(ctx, "x", x), x * x)[1], lambda ctx, g: 2 * g * ctx.x)
    ),
    "changed operand of an operation": lambda b: changed_between(b, lambda z: z * z),
    "changed operand, not needed": lambda b: changed_between(b, lambda z: z + 2 * z),
    "changed by a Function": lambda b: b.gradients(
        lambda x: (lambda z: (z * z, doubled(b)(z)))(x * 1), b.array([1.0, 2.0])
    ),
    "empty before backward": lambda b: b.custom(
        lambda ctx, x: (save_input(ctx, x), b.array([float(len(ctx.saved_tensors))]))
    )(b.array([1.0])),
    "last call counts": lambda b: b.gradients(
        b.custom(lambda ctx, x: (ctx.save_for_backward(x * 9), save_input(ctx, x))[1], times_saved), b.array([3.0])
    ),
    "as-is output in setup_context": lambda b: b.gradients(
        b.custom(lambda x: x, lambda ctx, g: g, setup=lambda ctx, i, o: ctx.save_for_backward(o)), b.array([1.0])
    ),
    "as-is output in forward": lambda b: b.gradients(
        b.custom(lambda ctx, x: (ctx.save_for_backward(x), x)[1], times_saved), b.array([3.0])
    ),
    "changed after as-is": lambda b: changed_between(b, b.custom(lambda ctx, x: x, lambda ctx, g: 7 * g)),
}


def observed(b, forward, *args, setup=None, backward=None, cotangents=None):
    """What backward was called with, and the gradients."""
    seen = []

    def spy(ctx, *gs):
        seen.extend(gs)
        return backward(ctx, *gs) if backward else gs[0]

    outputs, pullback = b.i.vjp(b.custom(forward, spy, setup=setup), args or [b.array([1.0, 2.0])])
    tensors = [b.i.requires_grad(y) for y in outputs if b.i.is_tensor(y)]
    first = b.ones(outputs[0])
    gradients = pullback(cotangents or [first] + [None] * (len(outputs) - 1))
    return tensors, seen, gradients


def marked(method, what):
    def forward(ctx, x):
        y, z = x * 1, x * 3
        getattr(ctx, method)(*what(y, z))
        return y, z, (x > 0)

    return forward


OUTPUTS = {
    "all differentiable": lambda b: observed(b, lambda ctx, x: (x * 1, x * 2)),
    "constant output": lambda b: observed(b, lambda ctx, x: (x * 1, b.array([5.0]))),
    "integer and bool": lambda b: observed(b, lambda ctx, x: (x * 1, b.xp.argmax(x, axis=0), x > 0)),
    "marked": lambda b: observed(b, marked("mark_non_differentiable", lambda y, z: (z,))),
    "marked number": lambda b: observed(b, marked("mark_non_differentiable", lambda y, z: (5,))),
    "marked no output": lambda b: observed(b, marked("mark_non_differentiable", lambda y, z: (z * 1,))),
    "None instead of zeros": lambda b: observed(b, marked("set_materialize_grads", lambda y, z: (False,))),
    "materialize by number": lambda b: observed(b, marked("set_materialize_grads", lambda y, z: (1,))),
    "values that are no tensors": lambda b: observed(
        b, lambda ctx, x: (x * 1, 5, None, "s"), backward=lambda ctx, g, *_: g
    ),
    "one-tuple": lambda b: b.custom(lambda ctx, x: (x * 1,), lambda ctx, g: g)(b.array([1.0])),
    "list": lambda b: b.i.requires_grad(b.i.vjp(b.custom(lambda ctx, x: [x * 1]), [b.array([1.0])])[0][0][0]),
    "same tensor twice": lambda b: observed(
        b,
        lambda ctx, x: (x * 2,) * 2,
        cotangents=[b.array([1.0, 1.0]), b.array([10.0, 10.0])],
        backward=lambda ctx, g, h: g + 100 * h,
    ),
    "as is": lambda b: observed(b, lambda ctx, x: x, backward=lambda ctx, g: 7 * g),
    "as is, unrecorded": lambda b: (
        lambda x: (lambda y: (y is x, b.i.shares_memory(x, y)))(b.custom(lambda ctx, x: x)(x))
    )(b.array([1.0])),
    "one node": lambda b: (lambda ys: b.i.node(ys[0]) is b.i.node(ys[1]))(
        b.i.vjp(b.custom(lambda ctx, x: (x * 1, x * 2)), [b.array([1.0])])[0]
    ),
    "cotangent of another shape": lambda b: observed(b, lambda ctx, x: x * 1, cotangents=[b.array([1.0])]),
    "cotangent of another dtype": lambda b: observed(b, lambda ctx, x: x * 1, cotangents=[b.array([1, 2], "int32")]),
    "complex cotangent": lambda b: observed(b, lambda ctx, x: x * 1, cotangents=[b.array([1j, 2], "complex128")]),
}


def needs(b, forward, call, setup=None):
    seen = []
    b.i.vjp(
        lambda x: call(
            b.custom(lambda ctx, *args: (seen.append(ctx.needs_input_grad), forward(*args))[1])
            if setup is None
            else b.custom(forward, setup=lambda ctx, inputs, output: seen.append((len(inputs), ctx.needs_input_grad))),
            x,
        ),
        [b.array([1.0])],
    )
    return seen


def defaults(x, y=None, k=2):
    return x * k


def under_no_grad(b, f, x):
    with b.i.no_grad():
        return f(x)


ARGUMENTS = {
    "all passed": lambda b: needs(b, defaults, lambda f, x: f(x, b.array([1.0]), 3)),
    "one passed": lambda b: needs(b, defaults, lambda f, x: f(x)),
    "defaults bound": lambda b: needs(b, defaults, lambda f, x: f(x), setup=True),
    "keyword bound": lambda b: needs(b, defaults, lambda f, x: f(x, k=5), setup=True),
    "unknown keyword": lambda b: needs(b, defaults, lambda f, x: f(x, zz=5), setup=True),
    "given twice": lambda b: needs(b, defaults, lambda f, x: f(x, x=5), setup=True),
    "under no_grad": lambda b: needs(b, defaults, lambda f, x: under_no_grad(b, f, x)),
    "integer tensor": lambda b: needs(b, defaults, lambda f, x: f(x, b.array([1, 2], "int64"))),
    "nested tensors": lambda b: b.i.requires_grad(
        b.i.vjp(lambda x: b.custom(lambda ctx, xs: xs[0] * 1)([x]), [b.array([1.0])])[0][0]
    ),
    "no forward": lambda b: b.gradients(b.custom(None, lambda ctx, g: g), b.array([1.0])),
    "no backward, not run": lambda b: b.custom(lambda ctx, x: x * 1)(b.array([1.0])),
    "no backward, run": lambda b: b.gradients(b.custom(lambda ctx, x: x * 1), b.array([1.0])),
    "vjp alone": lambda b: b.gradients(b.custom(lambda ctx, x: x * 1, vjp=lambda ctx, g: 3 * g), b.array([1.0])),
    "vjp and backward": lambda b: b.gradients(
        b.custom(lambda ctx, x: x * 1, lambda ctx, g: g, vjp=lambda ctx, g: 3 * g), b.array([1.0])
    ),
    "recorded inside": lambda b: b.gradients(
        lambda x: b.custom(lambda ctx, x: b.i.vjp(lambda z: z * 9, [x])[0][0], lambda ctx, g: 2 * g)(x), b.array([1.0])
    ),
}


def changing_view(b, make, change):
    def f(x):
        base = x * 1
        view = make(base)
        change(view, base)
        return base * 1, view * 1

    return b.gradients(f, b.array(np.arange(1.0, 5.0)))


def plus(x):
    x += 1


def times(x, y=3):
    x *= y


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


def second(b, f, x=(0.5, 2.0)):
    """Gradient of the gradient."""

    def first(x):
        outputs, pullback = b.i.vjp(f, [x])
        return pullback([b.ones(y) for y in outputs], differentiable=True)[0]

    return b.gradients(first, b.array(x))


def twice(b, f):
    """The same pullback called twice."""
    _, pullback = b.i.vjp(f, [b.array([1.0, 2.0])])
    return [pullback([b.array([1.0, 2.0])]) for _ in range(2)]


def accumulated(b, f, initial=None, track=(True, True), n=1):
    return b.i.backward(f, [b.array([1.0]), b.array([2.0])], [b.array([1.0])] * n, track=track, initial=initial)


def partial(b):
    """Two arguments, one asked for: what backward is told, and which nodes run."""
    log = []
    f = b.custom(lambda ctx, x, y: x * y, lambda ctx, g: (log.append(ctx.needs_input_grad), (g, 2 * g))[1])
    other = b.custom(lambda ctx, y: y * 1, lambda ctx, g: (log.append("other"), g)[1])
    _, pullback = b.i.vjp(lambda x, y: f(x, other(y)), [b.array([1.0]), b.array([2.0])])
    return pullback([b.array([1.0])], wrt=[True, False]), log


def order(b):
    """Calls and their order: once each, the latest first, with summed cotangents."""
    log = []
    f = b.custom(lambda ctx, x, k: x * k, lambda ctx, g: (log.append(float(b.i.numpy(g)[0])), (g * 2, None))[1])
    return b.gradients(lambda x: (lambda y: f(y, 1) + f(y, 2) * 10 + y * 3)(f(x, 1)), b.array([1.0])), log


def grad_mode(b, differentiable):
    seen = []
    f = b.custom(save_input, lambda ctx, g: (seen.append(b.i.requires_grad(ctx.saved_tensors[0] * 1)), g)[1])
    _, pullback = b.i.vjp(f, [b.array([1.0])])
    under_no_grad(b, lambda g: pullback([g], differentiable=differentiable), b.array([1.0]))
    return seen


def raised(b):
    with pytest.raises(KeyError):
        b.gradients(b.custom(lambda ctx, x: x * 1, lambda ctx, g: {}[g]), b.array([1.0]))
    return grad_mode(b, True)


ENGINE = {
    "second derivative through an input": lambda b: second(b, square(b)),
    "second derivative through an output": lambda b: second(
        b,
        b.custom(
            lambda ctx, x: (lambda y: (ctx.save_for_backward(y), y)[1])(b.xp.exp(x)),
            lambda ctx, g: g * ctx.saved_tensors[0],
        ),
    ),
    "second derivative of a saved intermediate": lambda b: second(
        b, b.custom(lambda ctx, x: (ctx.save_for_backward(2 * x), x * x)[1], lambda ctx, g: g * ctx.saved_tensors[0])
    ),
    "second derivative of an input on ctx": lambda b: second(
        b, b.custom(lambda ctx, x: (setattr(ctx, "x", x), x * x)[1], lambda ctx, g: 2 * g * ctx.x)
    ),
    "once, first derivative": lambda b: b.gradients(
        b.custom(save_input, b.ag.once_differentiable(times_saved)), b.array([3.0])
    ),
    "backward through NumPy": lambda b: second(
        b,
        b.custom(
            save_input, lambda ctx, g: b.xp.from_numpy(2 * b.xp.to_numpy(g) * b.xp.to_numpy(ctx.saved_tensors[0]), g)
        ),
    ),
    "pullback twice": lambda b: twice(b, square(b)),
    "ctx after backward": lambda b: twice(
        b, b.custom(lambda ctx, x: (setattr(ctx, "k", 3), x * 3)[1], lambda ctx, g: g * ctx.k)
    ),
    "accumulates": lambda b: accumulated(b, lambda x, y: x * y, [b.array([10.0]), None]),
    "accumulates for leaves that require grad": lambda b: accumulated(b, lambda x, y: x * y, track=(True, False)),
    "accumulates over outputs": lambda b: accumulated(b, lambda x, y: (x * y, x * 5), n=2),
    "no output requires grad": lambda b: accumulated(b, lambda x, y: x * y, track=(False, False)),
    "asked for a part": partial,
    "order of nodes": order,
    "mode of backward": lambda b: [grad_mode(b, flag) for flag in (False, True)],
    "closure": lambda b: (lambda w: b.gradients(b.custom(lambda ctx, x: x * w, lambda ctx, g: g * w), b.array([1.0])))(
        b.array([3.0])
    ),
    "error in backward": raised,
    "complex": lambda b: b.gradients(
        b.custom(save_input, lambda ctx, g: 2 * g * b.xp.conj(ctx.saved_tensors[0])), b.array([1 + 2j], "complex128")
    ),
    "abs of complex": lambda b: b.gradients(b.xp.abs, b.array([3 + 4j, 0j], "complex128")),
    "real and imag": lambda b: b.gradients(
        lambda z: (b.xp.real(z) * 2, b.xp.imag(z) * 3), b.array([1 + 2j], "complex128")
    ),
    "ties": lambda b: b.gradients(lambda x: b.xp.max(x, 0), b.array([3.0, 1.0, 3.0])),
    "kinks": lambda b: b.gradients(lambda x: (b.xp.abs(x), b.xp.sign(x)), b.array([-1.0, 0.0, 2.0])),
}


def forward_mode(b, forward, rule, moving=(True,), args=((1.0, 2.0),)):
    tangents = [b.array([10.0, 20.0]) if m else None for m in moving]
    _, found = b.i.jvp(b.custom(forward, jvp=rule), [b.array(a) for a in args], tangents)
    return found


def save_forward(ctx, x):
    ctx.save_for_forward(x)
    return x * x


FORWARD_MODE = {
    "saved": lambda b: forward_mode(b, save_forward, lambda ctx, t: 2 * t * ctx.saved_tensors[0]),
    "no rule": lambda b: forward_mode(b, save_forward, None),
    "zeros": lambda b: forward_mode(
        b, lambda ctx, x, y: x * y, lambda ctx, t, u: t + u + 1, (True, False), [(1.0, 2.0)] * 2
    ),
    "too few": lambda b: forward_mode(b, lambda ctx, x: (x * 1, x * 2), lambda ctx, t: (t,)),
    "too many": lambda b: forward_mode(b, lambda ctx, x: x * 1, lambda ctx, t: (t * 1, None)),
    "for an integer output": lambda b: forward_mode(
        b, lambda ctx, x: (x * 1, b.xp.argmax(x, axis=0)), lambda ctx, t: (t * 1, t * 1)
    ),
    "None for an integer output": lambda b: forward_mode(
        b, lambda ctx, x: (x * 1, b.xp.argmax(x, axis=0)), lambda ctx, t: (t * 1, None)
    ),
    "another shape": lambda b: forward_mode(b, lambda ctx, x: x * 1, lambda ctx, t: t[:1] * 1),
    "view": lambda b: forward_mode(b, lambda ctx, x: x[:1], lambda ctx, t: t[:1]),
    "copy of a view": lambda b: forward_mode(b, lambda ctx, x: x[:1], lambda ctx, t: t[:1] * 1),
    "in place": lambda b: forward_mode(b, double_in_place, lambda ctx, t: (times(t, 2), t)[1]),
    "not in place": lambda b: forward_mode(b, double_in_place, lambda ctx, t: 2 * t),
}

GROUPS = {
    "gradients": GRADIENTS,
    "saving": SAVING,
    "outputs": OUTPUTS,
    "arguments": ARGUMENTS,
    "in place": IN_PLACE,
    "engine": ENGINE,
    "forward mode": FORWARD_MODE,
}


@pytest.mark.parametrize(
    "scenario", [pytest.param(s, id=f"{group}: {name}") for group, ss in GROUPS.items() for name, s in ss.items()]
)
def test_model_and_torch_agree(scenario):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch, model = (Bench(implementation).outcome(scenario) for implementation in IMPLEMENTATIONS)
    assert model == torch
