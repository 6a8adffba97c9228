"""Faults of forward mode."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import torch
from torch.autograd import forward_ad
from torch.autograd.function import BackwardCFunction

from autograd_conformance.selftests.faults import plants
from autograd_conformance.selftests.faults.clauses.definitions import Fix
from autograd_conformance.selftests.faults.planting import fault
from autograd_conformance.selftests.faults.plants import among, ctx_method, tupled


@dataclass(frozen=True)
class Call:
    """A call in forward mode: its arguments and outputs with their tangents, and the tensors that were marked."""

    inputs: tuple[Any, ...]
    outputs: tuple[Any, ...]
    given: tuple[Any, ...]
    found: tuple[Any, ...]
    dirty: tuple[Any, ...] = ()
    marked: tuple[Any, ...] = ()

    def each(self, change: Callable[[Any, Any], Any]) -> tuple[Any, ...]:
        """Tangents changed by ``change(tangent, output)``; surplus ones are left as they are."""
        count = min(len(self.found), len(self.outputs))
        changed = (change(t, y) for t, y in zip(self.found[:count], self.outputs[:count], strict=True))
        return (*changed, *self.found[count:])


def _around_jvp(method):
    """The engine's call of a Function's jvp is ``method(original, *tangents)``."""
    return plants.wrapped(
        BackwardCFunction,
        "apply_jvp",
        lambda original, ctx, *tangents: method(lambda *given: original(ctx, *given), *tangents),
    )


@plants.anew
def _changed(change):
    """What jvp returns is ``change(call)``."""
    known = {}

    def apply(original, cls, *args):
        known.clear()
        known["inputs"] = args
        return original(cls, *args)

    def forward(original, *args):
        output = original(*args)
        known["outputs"] = tupled(output)
        return output

    def marking(name):
        def mark(original, ctx, *tensors):
            known[name] = tensors
            original(ctx, *tensors)

        return mark

    def jvp(original, *given):
        call = dict(known)
        return tuple(change(Call(given=given, found=tupled(original(*given)), **call)))

    return plants.all_of(
        plants.around_static("forward", forward),
        plants.around_apply(apply),
        ctx_method("mark_dirty", marking("dirty")),
        ctx_method("mark_non_differentiable", marking("marked")),
        _around_jvp(jvp),
    )


def _each(change):
    """Each tangent that jvp returns is ``change(it, its output)``."""
    return _changed(lambda call: call.each(change))


def _floating(x):
    return isinstance(x, torch.Tensor) and x.is_floating_point()


def _drops_tangents(original, cls, *args):
    primals = plants.of_tensors(lambda x: forward_ad.unpack_dual(x).primal, args)
    return original(cls, *(args if plants.defines(cls, "jvp") else primals))


def _raises_another(original, *tangents):
    try:
        return original(*tangents)
    except NotImplementedError as raised:
        raise RuntimeError(str(raised)) from None


def _zeros(change):
    """jvp gets ``change(it)`` for a tangent that is zero."""

    def jvp(original, *tangents):
        return original(*(change(t) if t is not None and t.numel() and not t.any() else t for t in tangents))

    return _around_jvp(jvp)


def _moves(x):
    return forward_ad.unpack_dual(x).tangent is not None


def _always_moves(original, cls, *args):
    if any(map(_moves, plants.tensors_of(args))) or forward_ad._current_level < 0 or not plants.defines(cls, "jvp"):
        return original(cls, *args)
    return original(cls, *(forward_ad.make_dual(a, torch.zeros_like(a)) if _floating(a) else a for a in args))


def _in_forward_mode(original, *tangents):
    with forward_ad._set_fwd_grad_enabled(True):
        return plants.of_tensors(
            lambda t: forward_ad.unpack_dual(t).primal if _moves(t) else t, tupled(original(*tangents))
        )


def _filled(call):
    missing = call.outputs[len(call.found) :]
    return (*call.found, *(torch.zeros_like(y) if _floating(y) else None for y in missing))


def _for_none(value):
    """A None from jvp for a differentiable output becomes this value of the output."""
    return _changed(
        lambda call: call.each(lambda t, y: value(y) if t is None and _floating(y) and not among(call.marked, y) else t)
    )


def _fitted(change):
    """A tangent of another shape than its output is ``change(it, the shape)``, where that is possible."""

    def fit(t, y):
        if not (isinstance(t, torch.Tensor) and _floating(y)) or t.shape == y.shape:
            return t
        try:
            return change(t, y.shape)
        except RuntimeError:
            return t

    return _each(fit)


def _refuses_other_dtypes(t, y):
    if isinstance(t, torch.Tensor) and _floating(y) and t.dtype != y.dtype:
        raise RuntimeError(f"expected a tangent of {y.dtype}, got one of {t.dtype}")
    return t


def _memory(t):
    return t.untyped_storage().data_ptr() if isinstance(t, torch.Tensor) else None


def _views(least):
    """The tangent of a view of an argument, from position ``least`` on, is made a view of its tangent."""

    def change(call):
        def view(t, y):
            for x, given in list(zip(call.inputs, call.given, strict=True))[least:]:
                same = _memory(y) not in (None, 0) and _memory(x) == _memory(y)
                if same and _memory(t) != _memory(given) and not call.dirty:
                    return given.as_strided(y.shape, y.stride(), y.storage_offset())
            return t

        return call.each(view)

    return _changed(change)


def _in_place(least):
    """The tangent of a dirty argument, from position ``least`` on, is written into its own tangent."""

    def change(call):
        def written(t, y):
            for x, given in list(zip(call.inputs, call.given, strict=True))[least:]:
                if x is y and among(call.dirty, y):
                    return given.copy_(t)
            return t

        return call.each(written)

    return _changed(change)


def _takes_anything(original, ctx, *values):
    original(ctx, *(v if isinstance(v, torch.Tensor) else None for v in values))


def _without_history(t):
    return t.detach() if plants.tracked(t) else t


def _gradcheck_aligns_outputs(original, fn, inputs, outputs, **options):
    kept = [y.requires_grad for y in tupled(fn(*inputs))]

    def differentiable(*args):
        return tuple(y for y, keep in zip(tupled(fn(*args)), kept, strict=True) if keep)

    return original(differentiable, inputs, outputs, **options)


def _outliving(original, tensor, **options):
    """Tangents that were seen once are seen later."""
    primal, tangent = original(tensor, **options)
    if tangent is not None:
        tensor.seen_tangent = tangent
    return forward_ad.UnpackedDualTensor(primal, getattr(tensor, "seen_tangent", None))


def _makes_any_dual(original, tensor, tangent, **options):
    floats = (x if x.is_floating_point() or x.is_complex() else x.float() for x in (tensor, tangent))
    return original(*floats, **options)


_CHECK = import_module("torch.autograd.gradcheck")


def _as_it_is(unpack, x, **level):
    return forward_ad.UnpackedDualTensor(x, unpack(x, **level).tangent)


FAULTS = (
    fault("JVP-01", plants.around_apply(_drops_tangents)),
    fault("JVP-01: another exception", _around_jvp(_raises_another), "RuntimeError"),
    fault("JVP-02", _zeros(lambda _: None), neighbours=("JVP-14",)),
    fault(
        "JVP-02: zeros of another dtype",
        _zeros(lambda t: t.to(torch.float32 if t.dtype == torch.float64 else torch.float64)),
        "dtypes",
    ),
    fault("JVP-03", ctx_method("set_materialize_grads", lambda *_: None)),
    fault("JVP-04", plants.around_apply(_always_moves)),
    fault("JVP-04: recording off in jvp", _around_jvp(plants.under(torch.no_grad)), neighbours=("JVP-14",)),
    fault("JVP-04: forward mode on in jvp", _around_jvp(_in_forward_mode)),
    fault("JVP-05", _changed(lambda call: call.found[: len(call.outputs)])),
    fault("JVP-05: missing tangents are filled with zeros", _changed(_filled)),
    fault("JVP-06", _each(lambda t, y: t if _floating(y) else None)),
    fault(
        "JVP-06: a tangent for a marked output is ignored",
        _changed(lambda call: call.each(lambda t, y: None if among(call.marked, y) else t)),
    ),
    fault("JVP-07", _for_none(torch.ones_like), "tangents, position"),
    fault("JVP-08", _fitted(torch.Tensor.expand)),
    fault("JVP-08: tangents are reshaped", _fitted(torch.reshape)),
    fault("JVP-09", _each(lambda t, y: t.to(y.dtype) if isinstance(t, torch.Tensor) and _floating(y) else t)),
    fault("JVP-09: other dtypes are refused", _each(_refuses_other_dtypes)),
    fault("JVP-10", _views(0)),
    fault("JVP-10: only the first argument is checked", _views(1)),
    fault("JVP-11", _in_place(0)),
    fault("JVP-11: only the first argument is checked", _in_place(1)),
    fault("JVP-12", ctx_method("save_for_forward", _takes_anything)),
    fault("JVP-14", _each(lambda t, _: _without_history(t))),
    fault(
        "JVP-14: tangents are detached before jvp",
        _around_jvp(lambda original, *tangents: original(*map(_without_history, tangents))),
    ),
    fault(
        "JVP-15", plants.put(BackwardCFunction, "__delattr__", plants.raising("ctx keeps what it has", AttributeError))
    ),
    fault("JVP-15: deleting has no effect", plants.put(BackwardCFunction, "__delattr__", lambda *_: None)),
    fault("JVP-16", plants.wrapped(forward_ad, "unpack_dual", _outliving)),
    fault(
        "JVP-17",
        plants.wrapped(forward_ad, "make_dual", lambda make, x, t, **level: make(x.clone(), t, **level)),
        "the memory of the tensor",
    ),
    fault(
        "JVP-17: tangents are copied",
        plants.wrapped(forward_ad, "make_dual", lambda make, x, t, **level: make(x, t.clone(), **level)),
        "the memory of the tangent",
    ),
    fault("JVP-17: unpack_dual gives its tensor as the primal", plants.wrapped(forward_ad, "unpack_dual", _as_it_is)),
    fault("JVP-16: integers become floating", plants.wrapped(forward_ad, "make_dual", _makes_any_dual)),
)

FIXES = (
    Fix("JVP-07", _for_none(torch.zeros_like)),
    Fix(
        "JVP-14",
        plants.wrapped(_CHECK, "_get_analytical_jacobian_forward_ad", _gradcheck_aligns_outputs),
        variant="marked",
    ),
)
