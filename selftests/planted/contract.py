"""Faults in what a Function's backward shares, remembers, marks and returns."""

# ruff: noqa: ARG001, ARG005 - not each hook of a body uses all of its parameters

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from autograd_conformance.reference.functions.indexing import NUMPY_TAKE
from autograd_conformance.reference.functions.scalars import NUMPY_MUL, SAVE_FOR_BACKWARD
from autograd_conformance.selftests.planted.definitions import (
    PAIR,
    PRODUCT,
    SIGNED,
    SQUARE,
    custom,
    planted,
    product_with,
    signed_with,
    square_with,
)


def _derived(base: Any, **methods: Any) -> Any:
    """The body of a documented Function with some methods replaced; they take ``xp`` first."""

    def body(xp: Any, ag: Any) -> Any:
        bound = {name: staticmethod(lambda *args, m=method: m(xp, *args)) for name, method in methods.items()}
        return type(base.name, (base.body(xp, ag),), bound)

    return body


def _stateful(remember: Any, recall: Any) -> Any:
    """Square with something kept between calls: ``remember(kept, ctx, x)``, ``recall(kept, ctx, g, x, right)``."""

    def body(xp: Any, ag: Any) -> Any:
        kept: dict[Any, Any] = {}

        def output(xp: Any, ctx: Any, x: Any, y: Any) -> Any:
            remember(kept, ctx, x)
            return y

        return square_with(output, lambda xp, ctx, g, x, right: recall(kept, ctx, g, x, right))(xp, ag)

    return body


def _count(kept: Any, ctx: Any, x: Any) -> None:
    kept["calls"] = kept.get("calls", 0) + 1


def _keep(kept: Any, ctx: Any, x: Any) -> None:
    kept["x"] = x.detach().clone()


def _saved_multiplied(xp: Any, ctx: Any, g: Any, x: Any, right: Any) -> Any:
    x.data.mul_(1.5)
    return right


def _cotangent_multiplied(xp: Any, ctx: Any, g: Any, x: Any, right: Any) -> Any:
    g.data.copy_(g.data * 2)
    return right


def _intermediate(change: Any) -> Any:
    """Square that saves its derivative and gives it away or changes it."""

    def save(xp: Any, ctx: Any, x: Any) -> None:
        ctx.save_for_backward(xp.conj(2 * x).resolve_conj())

    return square_with(save=save, gradient=change)


def _multiplied_in_place(xp: Any, ctx: Any, g: Any, slope: Any, right: Any) -> Any:
    slope.data.mul_(g)
    return slope.data.clone()


def _given_away(xp: Any, ctx: Any, g: Any, slope: Any, right: Any) -> Any:
    return slope.view_as(slope) if bool((g == 1).all()) else slope * g


def _adding(gradients: Any) -> Any:
    return custom(forward=lambda xp, ctx, x, y: x + y, backward=lambda xp, ctx, g: gradients(g))


_ADD = {
    "forward": lambda x, y: (x + y,),
    "vjp": lambda cotangents, x, y: (cotangents[0], cotangents[0]),
    "jvp": None,
    "batching": False,
}

_ADDITION = replace(PRODUCT, name="Addition", body=_adding(lambda g: (g.clone(), g.clone())), **_ADD)


def _two_views(g: Any) -> Any:
    both = g.clone()
    return both.view_as(both), both.view_as(both)


def _factor_given_away(xp: Any, ctx: Any, g: Any, x: Any, y: Any, gx: Any, gy: Any) -> Any:
    return (y.view_as(y) if bool((g == 1).all()) else gx), gy


def _buffered(kept: Any, ctx: Any, g: Any, x: Any, right: Any) -> Any:
    buffer = kept.setdefault((x.shape, x.dtype), torch.empty_like(right))
    return buffer.copy_(right)[...]


def _attribute(xp: Any, ctx: Any, x: Any) -> None:
    ctx.x = x


def _exp_with(forward: Any, output: Any) -> Any:
    """exp(x) and its double, with backward taking the first from where ``output(ctx)`` finds it."""
    return custom(forward=forward, backward=lambda xp, ctx, g, h: (g + 2 * h) * xp.conj(output(ctx)))


def _exp_saved(xp: Any, ctx: Any, x: Any) -> Any:
    y = xp.exp(x)
    ctx.save_for_backward(y)
    return y, y * 2


def _exp_on_ctx(xp: Any, ctx: Any, x: Any) -> Any:
    ctx.y = xp.exp(x)
    return ctx.y, ctx.y * 2


EXP_TWICE = replace(
    PAIR,
    name="ExpTwice",
    body=_exp_with(_exp_saved, lambda ctx: ctx.saved_tensors[0]),
    forward=lambda x: (np.exp(x), np.exp(x) * 2),
    vjp=lambda cotangents, x: ((cotangents[0] + 2 * cotangents[1]) * np.conj(np.exp(x)),),
)


def _output_kept(xp: Any, ctx: Any, x: Any, y: Any) -> Any:
    ctx.y = y
    return y


def _last_input(kept: Any, ctx: Any, g: Any, x: Any, right: Any) -> Any:
    last = kept["x"]
    return 2 * g * torch.conj(last) if (last.shape, last.dtype) == (x.shape, x.dtype) else right


def _integer_forward(xp: Any, ctx: Any, x: Any, y: Any, z: int) -> Any:
    ctx.save_for_backward(x, y)
    ctx.z = z
    return x * y + y * z + x * z * y


def _integer_backward(xp: Any, ctx: Any, g: Any) -> Any:
    x, y = ctx.saved_tensors
    return g * xp.conj(y * (1 + ctx.z)), g * xp.conj(x * (1 + ctx.z) + ctx.z), xp.sum(g)


def _take_backward(xp: Any, ctx: Any, g: Any) -> Any:
    ind, ind_inv = ctx.saved_tensors
    return xp.take_along_axis(g, ind_inv, axis=ctx.dim), xp.zeros_like(ind), None, None


def _mul_backward(xp: Any, ctx: Any, g: Any) -> Any:
    x, y = ctx.saved_tensors
    return g * xp.conj(y), g * xp.conj(x)


def _leaking() -> Any:
    kept: list[Any] = []

    def output(xp: Any, ctx: Any, x: Any, y: Any) -> Any:
        kept.append(x)
        return y

    return square_with(output)


def _caching_gradients() -> Any:
    kept: dict[Any, Any] = {}

    def gradient(xp: Any, ctx: Any, g: Any, x: Any, right: Any) -> Any:
        kept["last"] = right
        return right

    return square_with(gradient=gradient)


def _shared_scratch() -> Any:
    """The gradient passes through a buffer that all calls share, when another thread has written there, too."""
    shared, written = dict[Any, Any](), threading.Condition()

    def gradient(xp: Any, ctx: Any, g: Any, x: Any, right: Any) -> Any:
        scratch = shared.setdefault((x.shape, x.dtype), torch.empty_like(right))
        with written:
            scratch.copy_(xp.conj(x))
            written.notify_all()
            written.wait(timeout=0.02 * (threading.current_thread() is not threading.main_thread()))
        return 2 * g * scratch

    return square_with(gradient=gradient)


CONTRACT = (
    planted(
        "VJP-NONE",
        SAVE_FOR_BACKWARD,
        "GradientForAnInteger",
        custom(forward=_integer_forward, backward=_integer_backward),
        "returns a gradient for an argument that is an int",
        "non-tensor",
    ),
    planted(
        "VJP-NONE",
        NUMPY_TAKE,
        "GradientForAnIndex",
        _derived(NUMPY_TAKE, backward=_take_backward),
        "returns zeros for an index tensor",
        "non-differentiable arguments",
    ),
    planted(
        "VJP-NONE",
        PRODUCT,
        "NoneForTheSecond",
        product_with(gradients=lambda xp, ctx, g, x, y, gx, gy: (gx, gy if ctx.needs_input_grad[0] else None)),
        "returns None for the second argument while the first does not require grad",
        "which tensors get a gradient",
    ),
    planted(
        "VJP-NONDIFF",
        SIGNED,
        "NotMarked",
        signed_with(lambda ctx, sign: None),
        "a floating output is not marked non-differentiable",
        "requires_grad of the non-differentiable outputs",
        variant="flags",
    ),
    planted(
        "VJP-NONDIFF",
        SIGNED,
        "NotMaterialized",
        signed_with(lambda ctx, sign: (ctx.mark_non_differentiable(sign), ctx.set_materialize_grads(False))),
        "switches materialization off without declaring it",
        "whether that cotangent is None",
    ),
    planted(
        "VJP-FIT",
        NUMPY_MUL,
        "NotReduced",
        _derived(NUMPY_MUL, backward=_mul_backward),
        "leaves the reduction of broadcast gradients to the engine",
        "gradient as backward returned it",
    ),
    *(
        planted("VJP-FIT", SQUARE, name, square_with(gradient=gradient), fault, "argument 0's gradient as backward")
        for name, gradient, fault in (
            (
                "SinglePrecision",
                lambda xp, ctx, g, x, right: right.float() if x.dtype == torch.float64 else right,
                "the gradient has lower precision",
            ),
            (
                "Widened",
                lambda xp, ctx, g, x, right: right.float() if x.dtype == torch.float16 else right,
                "the gradient of half precision is in single precision",
            ),
            ("OneDimensionMore", lambda xp, ctx, g, x, right: right[None], "the gradient has one dimension too many"),
            (
                "RowForScalar",
                lambda xp, ctx, g, x, right: right if x.shape else xp.reshape(right, (1,)),
                "the gradient of a 0-d tensor has one dimension",
            ),
        )
    ),
    *(
        planted("VJP-PURE", SQUARE, name, square_with(gradient=gradient), fault, *says)
        for name, gradient, fault, says in (
            (
                "CotangentChanged",
                _cotangent_multiplied,
                "backward changes its cotangent",
                ("what backward changed", "cotangent of output 0"),
            ),
            (
                "SavedInputChanged",
                _saved_multiplied,
                "backward changes the input that it saved",
                ("what backward changed", "argument 0 (x)"),
            ),
        )
    ),
    planted(
        "VJP-PURE",
        PRODUCT,
        "FactorGivenAway",
        product_with(gradients=_factor_given_away),
        "the gradient is a view of the other factor where the cotangent is one",
        "shares memory",
        "argument 1 (y)",
    ),
    planted(
        "VJP-PURE",
        _ADDITION,
        "OneTensorThroughViews",
        _adding(_two_views),
        "both gradients are views of one tensor",
        "gradient of argument 0 (x)",
        "gradient of argument 1 (y)",
        variant="leaves",
    ),
    planted(
        "VJP-PURE",
        SQUARE,
        "GradientInClassBuffer",
        _stateful(lambda kept, ctx, x: None, _buffered),
        "every gradient of a shape lies in one buffer that the class keeps",
        "gradient of argument 0 (x)",
        variant="owned",
    ),
    planted(
        "VJP-PURE",
        SQUARE,
        "SavedIntermediateGivenAway",
        _intermediate(_given_away),
        "a gradient is a view of a saved tensor, which changes with it",
        "inplace operation",
        variant="owned",
    ),
    *(
        planted("VJP-REPEAT", SQUARE, name, body, fault, "gradient of argument 0 (x)", says)
        for name, body, fault, says in (
            (
                "CallsCounted",
                _stateful(_count, lambda kept, ctx, g, x, right: right if kept["calls"] % 3 else right * 2),
                "every third call gives another gradient",
                "bit for bit",
            ),
            (
                "RememberedByShape",
                _stateful(
                    lambda kept, ctx, x: kept.setdefault((x.shape, x.dtype), x.detach().clone()),
                    lambda kept, ctx, g, x, right: 2 * g * torch.conj(kept[x.shape, x.dtype]),
                ),
                "the derivative is kept from the first call with that shape",
                "hint",
            ),
            (
                "StateOfTheLastCall",
                _stateful(_keep, _last_input),
                "backward takes the input of the last call, whichever it was",
                "bit for bit",
            ),
            (
                "Noisy",
                square_with(
                    gradient=lambda xp, ctx, g, x, right: right * (1 + 1e-7 * torch.rand(x.shape).to(right.dtype))
                ),
                "the gradient carries noise",
                "bit for bit",
            ),
            (
                "SavedIntermediateChanged",
                _intermediate(_multiplied_in_place),
                "backward multiplies the saved derivative in place",
                "a second backward",
            ),
        )
    ),
    planted(
        "VJP-CHAIN",
        SQUARE,
        "StateOfTheLastCall",
        _stateful(_keep, _last_input),
        "backward takes the input of the last call, whichever it was",
        "gradient of argument 0 (x)",
        variant="instances",
    ),
    planted(
        "VJP-INPLACE-SAFE",
        SQUARE,
        "InputOnCtx",
        square_with(save=_attribute, saved=lambda ctx: ctx.x),
        "keeps its input as an attribute of ctx",
        "gradient of argument 0 (x)",
        "save_for_backward",
    ),
    planted(
        "VJP-INPLACE-SAFE",
        SQUARE,
        "DataSaved",
        square_with(save=lambda xp, ctx, x: ctx.save_for_backward(x.data)),
        "saves its input without its version counter",
        "gradient of argument 0 (x)",
    ),
    planted(
        "VJP-INPLACE-SAFE",
        EXP_TWICE,
        "OutputOnCtx",
        _exp_with(_exp_on_ctx, lambda ctx: ctx.y),
        "keeps an output as an attribute of ctx",
        "gradient of argument 0 (x)",
    ),
    planted(
        "MEM-FREE",
        SQUARE,
        "OutputOnCtx",
        square_with(_output_kept),
        "keeps its output on ctx, which makes a cycle",
        "what is alive",
        "output 0",
    ),
    planted(
        "MEM-FREE",
        SQUARE,
        "InputsListed",
        _leaking(),
        "appends its input to a list",
        "what is alive",
        "argument 0 (x)",
    ),
    planted(
        "MEM-FREE",
        SQUARE,
        "GradientCached",
        _caching_gradients(),
        "keeps the last gradient",
        "what is alive",
        "gradient of argument 0 (x)",
    ),
    *(
        planted("ENV-THREADS", SQUARE, name, body, fault, "gradient of argument 0 (x)", "several threads")
        for name, body, fault in (
            ("SharedScratch", _shared_scratch(), "the derivative passes through a buffer that all calls share"),
            (
                "StateOfTheLastCall",
                _stateful(_keep, _last_input),
                "backward takes the input of the last call, whichever thread made it",
            ),
        )
    ),
)
