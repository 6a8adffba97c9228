"""Faults in what a Function's backward shares, remembers, marks and returns."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from autograd_conformance.reference.functions.indexing import NUMPY_TAKE
from autograd_conformance.reference.functions.scalars import NUMPY_MUL, SAVE_FOR_BACKWARD
from autograd_conformance.selftests.faults.properties.definitions import (
    PAIR,
    PRODUCT,
    SIGNED,
    custom,
    derived,
    in_gradient,
    in_square,
    planted,
    product_with,
    signed_with,
    square_with,
)


def _stateful(remember, recall):
    """Square with something kept between calls: ``remember(kept, x)``, ``recall(kept, g, x, right)``."""

    def body(xp, ag):
        kept = {}

        def output(xp, ctx, x, y):
            remember(kept, x)
            return y

        return square_with(output, lambda xp, ctx, g, x, right: recall(kept, g, x, right))(xp, ag)

    return body


def _count(kept, x):
    kept["calls"] = kept.get("calls", 0) + 1


def _keep(kept, x):
    kept["x"] = x.detach().clone()


def _last_input(kept, g, x, right):
    last = kept["x"]
    return 2 * g * torch.conj(last) if (last.shape, last.dtype) == (x.shape, x.dtype) else right


_OF_THE_LAST_CALL = _stateful(_keep, _last_input)


def _saved_multiplied(g, x, right):
    x.data.mul_(1.5)
    return right


def _cotangent_multiplied(g, x, right):
    g.data.copy_(g.data * 2)
    return right


def _intermediate(change):
    """Square that saves its derivative and gives it away or changes it."""

    def save(xp, ctx, x):
        ctx.save_for_backward(xp.conj(2 * x).resolve_conj())

    return square_with(save=save, gradient=change)


def _multiplied_in_place(xp, ctx, g, slope, right):
    slope.data.mul_(g)
    return slope.data.clone()


def _given_away(xp, ctx, g, slope, right):
    return slope.view_as(slope) if bool((g == 1).all()) else slope * g


def _adding(gradients):
    return custom(forward=lambda xp, ctx, x, y: x + y, backward=lambda xp, ctx, g: gradients(g))


_ADD = {
    "forward": lambda x, y: (x + y,),
    "vjp": lambda cotangents, x, y: (cotangents[0], cotangents[0]),
    "jvp": None,
    "batching": False,
}

_ADDITION = replace(PRODUCT, name="Addition", body=_adding(lambda g: (g.clone(), g.clone())), **_ADD)


def _two_views(g):
    both = g.clone()
    return both.view_as(both), both.view_as(both)


def _factor_given_away(xp, ctx, g, x, y, gx, gy):
    return (y.view_as(y) if bool((g == 1).all()) else gx), gy


def _buffered(kept, g, x, right):
    buffer = kept.setdefault((x.shape, x.dtype), torch.empty_like(right))
    return buffer.copy_(right)[...]


def _exp_with(forward, output):
    """exp(x) and its double, with backward taking the first from where ``output(ctx)`` finds it."""
    return custom(forward=forward, backward=lambda xp, ctx, g, h: (g + 2 * h) * xp.conj(output(ctx)))


def _exp_saved(xp, ctx, x):
    y = xp.exp(x)
    ctx.save_for_backward(y)
    return y, y * 2


def _exp_on_ctx(xp, ctx, x):
    ctx.y = xp.exp(x)
    return ctx.y, ctx.y * 2


EXP_TWICE = replace(
    PAIR,
    name="ExpTwice",
    body=_exp_with(_exp_saved, lambda ctx: ctx.saved_tensors[0]),
    forward=lambda x: (np.exp(x), np.exp(x) * 2),
    vjp=lambda cotangents, x: ((cotangents[0] + 2 * cotangents[1]) * np.conj(np.exp(x)),),
)


def _output_kept(xp, ctx, x, y):
    ctx.y = y
    return y


def _integer_forward(xp, ctx, x, y, z):
    ctx.save_for_backward(x, y)
    ctx.z = z
    return x * y + y * z + x * z * y


def _integer_backward(xp, ctx, g):
    x, y = ctx.saved_tensors
    return g * xp.conj(y * (1 + ctx.z)), g * xp.conj(x * (1 + ctx.z) + ctx.z), xp.sum(g)


def _take_backward(xp, cls, ctx, g):
    ind, ind_inv = ctx.saved_tensors
    return xp.take_along_axis(g, ind_inv, axis=ctx.dim), xp.zeros_like(ind), None, None


def _mul_backward(xp, cls, ctx, g):
    x, y = ctx.saved_tensors
    return g * xp.conj(y), g * xp.conj(x)


def _note(kept, x):
    kept.setdefault("all", []).append(x)


def _cache(kept, g, x, right):
    kept["last"] = right
    return right


def _shared_scratch():
    """The gradient passes through a buffer that all calls share, when another thread has written there, too."""
    shared, written = dict[Any, Any](), threading.Condition()

    def gradient(xp, ctx, g, x, right):
        scratch = shared.setdefault((x.shape, x.dtype), torch.empty_like(right))
        with written:
            scratch.copy_(xp.conj(x))
            written.notify_all()
            written.wait(timeout=0.02 * (threading.current_thread() is not threading.main_thread()))
        return 2 * g * scratch

    return square_with(gradient=gradient)


CONTRACT = (
    planted(
        "VJP-NONE GradientForAnInteger: returns a gradient for an argument that is an int",
        SAVE_FOR_BACKWARD,
        custom(forward=_integer_forward, backward=_integer_backward),
        "non-tensor",
    ),
    planted(
        "VJP-NONE GradientForAnIndex: returns zeros for an index tensor",
        NUMPY_TAKE,
        derived(NUMPY_TAKE, backward=_take_backward),
        "non-differentiable arguments",
    ),
    planted(
        "VJP-NONE NoneForTheSecond: returns None for the second argument while the first does not require grad",
        PRODUCT,
        product_with(gradients=lambda xp, ctx, g, x, y, gx, gy: (gx, gy if ctx.needs_input_grad[0] else None)),
        "which tensors get a gradient",
    ),
    planted(
        "VJP-NONDIFF/flags NotMarked: a floating output is not marked non-differentiable",
        SIGNED,
        signed_with(lambda ctx, sign: None),
        "requires_grad of the non-differentiable outputs",
    ),
    planted(
        "VJP-NONDIFF NotMaterialized: switches materialization off without declaring it",
        SIGNED,
        signed_with(lambda ctx, sign: (ctx.mark_non_differentiable(sign), ctx.set_materialize_grads(False))),
        "whether that cotangent is None",
    ),
    planted(
        "VJP-FIT NotReduced: leaves the reduction of broadcast gradients to the engine",
        NUMPY_MUL,
        derived(NUMPY_MUL, backward=_mul_backward),
        "gradient as backward returned it",
    ),
    in_gradient(
        "VJP-FIT SinglePrecision: the gradient has lower precision",
        lambda g, x, right: right.float() if x.dtype == torch.float64 else right,
        "argument 0's gradient as backward",
    ),
    in_gradient(
        "VJP-FIT Widened: the gradient of half precision is in single precision",
        lambda g, x, right: right.float() if x.dtype == torch.float16 else right,
        "argument 0's gradient as backward",
    ),
    in_gradient(
        "VJP-FIT OneDimensionMore: the gradient has one dimension too many",
        lambda g, x, right: right[None],
        "argument 0's gradient as backward",
    ),
    in_gradient(
        "VJP-FIT RowForScalar: the gradient of a 0-d tensor has one dimension",
        lambda g, x, right: right if x.shape else torch.reshape(right, (1,)),
        "argument 0's gradient as backward",
    ),
    in_gradient(
        "VJP-PURE CotangentChanged: backward changes its cotangent",
        _cotangent_multiplied,
        "what backward changed",
        "cotangent of output 0",
    ),
    in_gradient(
        "VJP-PURE SavedInputChanged: backward changes the input that it saved",
        _saved_multiplied,
        "what backward changed",
        "argument 0 (x)",
    ),
    planted(
        "VJP-PURE FactorGivenAway: the gradient is a view of the other factor where the cotangent is one",
        PRODUCT,
        product_with(gradients=_factor_given_away),
        "shares memory",
        "argument 1 (y)",
    ),
    planted(
        "VJP-PURE/leaves OneTensorThroughViews: both gradients are views of one tensor",
        _ADDITION,
        _adding(_two_views),
        "gradient of argument 0 (x)",
        "gradient of argument 1 (y)",
    ),
    in_square(
        "VJP-PURE/owned GradientInClassBuffer: every gradient of a shape lies in one buffer that the class keeps",
        _stateful(lambda kept, x: None, _buffered),
    ),
    in_square(
        "VJP-PURE/owned SavedIntermediateGivenAway: a gradient is a view of a saved tensor, which changes with it",
        _intermediate(_given_away),
        "inplace operation",
    ),
    in_square(
        "VJP-REPEAT CallsCounted: every third call gives another gradient",
        _stateful(_count, lambda kept, g, x, right: right if kept["calls"] % 3 else right * 2),
        "gradient of argument 0 (x)",
        "bit for bit",
    ),
    in_square(
        "VJP-REPEAT RememberedByShape: the derivative is kept from the first call with that shape",
        _stateful(
            lambda kept, x: kept.setdefault((x.shape, x.dtype), x.detach().clone()),
            lambda kept, g, x, right: 2 * g * torch.conj(kept[x.shape, x.dtype]),
        ),
        "gradient of argument 0 (x)",
        "hint",
    ),
    in_square(
        "VJP-REPEAT StateOfTheLastCall: backward takes the input of the last call, whichever it was",
        _OF_THE_LAST_CALL,
        "gradient of argument 0 (x)",
        "bit for bit",
    ),
    in_gradient(
        "VJP-REPEAT Noisy: the gradient carries noise",
        lambda g, x, right: right * (1 + 1e-7 * torch.rand(x.shape).to(right.dtype)),
        "gradient of argument 0 (x)",
        "bit for bit",
    ),
    in_square(
        "VJP-REPEAT SavedIntermediateChanged: backward multiplies the saved derivative in place",
        _intermediate(_multiplied_in_place),
        "gradient of argument 0 (x)",
        "a second backward",
    ),
    in_square(
        "VJP-CHAIN/instances StateOfTheLastCall: backward takes the input of the last call, whichever it was",
        _OF_THE_LAST_CALL,
    ),
    in_square(
        "VJP-INPLACE-SAFE InputOnCtx: keeps its input as an attribute of ctx",
        square_with(save=lambda xp, ctx, x: setattr(ctx, "x", x), saved=lambda ctx: ctx.x),
        "gradient of argument 0 (x)",
        "save_for_backward",
    ),
    in_square(
        "VJP-INPLACE-SAFE DataSaved: saves its input without its version counter",
        square_with(save=lambda xp, ctx, x: ctx.save_for_backward(x.data)),
    ),
    planted(
        "VJP-INPLACE-SAFE OutputOnCtx: keeps an output as an attribute of ctx",
        EXP_TWICE,
        _exp_with(_exp_on_ctx, lambda ctx: ctx.y),
        "gradient of argument 0 (x)",
    ),
    in_square(
        "MEM-FREE OutputOnCtx: keeps its output on ctx, which makes a cycle",
        square_with(_output_kept),
        "what is alive",
        "output 0",
    ),
    in_square(
        "MEM-FREE InputsListed: appends its input to a list",
        _stateful(_note, lambda kept, g, x, right: right),
        "what is alive",
        "argument 0 (x)",
    ),
    in_square(
        "MEM-FREE GradientCached: keeps the last gradient",
        _stateful(lambda kept, x: None, _cache),
        "what is alive",
        "gradient of argument 0 (x)",
    ),
    in_square(
        "ENV-THREADS SharedScratch: the derivative passes through a buffer that all calls share",
        _shared_scratch(),
        "gradient of argument 0 (x)",
        "several threads",
    ),
    in_square(
        "ENV-THREADS StateOfTheLastCall: backward takes the input of the last call, whichever thread made it",
        _OF_THE_LAST_CALL,
        "gradient of argument 0 (x)",
        "several threads",
    ),
)
