"""Scenarios of one Function: its gradients, what it saves, its outputs and its arguments."""

# The methods of a Function have parameters that not each of them uses.
# ruff: noqa: ARG001, ARG005

from __future__ import annotations

import numpy as np

from autograd_conformance.selftests.implementations.model_functions import save_input
from autograd_conformance.selftests.implementations.scenarios.bench import (
    doubled,
    same,
    square,
    times_saved,
    under_no_grad,
)

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
    "argument that is not a tensor": lambda b: b.gradients(
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
    "values that are not tensors": lambda b: observed(
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
