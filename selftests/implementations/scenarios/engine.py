"""Scenarios of the engine: repeated and second derivatives, accumulation, and forward mode."""

# The methods of a Function have parameters that not each of them uses.
# ruff: noqa: ARG005

from __future__ import annotations

import pytest

from autograd_conformance.selftests.implementations.model_functions import double_in_place, save_input
from autograd_conformance.selftests.implementations.scenarios.bench import square, times, times_saved, under_no_grad


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
    """Two arguments, one asked for: what backward gets, and which nodes run."""
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
