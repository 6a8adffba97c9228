"""Faults of forward mode."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any
from unittest.mock import patch

import torch
from torch.autograd import forward_ad
from torch.autograd.function import BackwardCFunction

from autograd_conformance.selftests.planted_clauses.definitions import Fix
from autograd_conformance.selftests.planted_clauses.intercept import around_apply, ctx_method, replaced
from autograd_conformance.selftests.planting import Fault


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


def _tuple(values: Any) -> tuple[Any, ...]:
    return values if isinstance(values, tuple) else (values,)


def _contains(tensors: Any, value: Any) -> bool:
    return any(t is value for t in tensors)


def _around_jvp(method: Callable[..., Any]) -> AbstractContextManager[Any]:
    """The engine's call of a Function's jvp is ``method(original, *tangents)``."""
    original = BackwardCFunction.apply_jvp

    def apply_jvp(ctx: Any, *tangents: Any) -> Any:
        return method(functools.partial(original, ctx), *tangents)

    return patch.object(BackwardCFunction, "apply_jvp", apply_jvp)


@contextmanager
def _changed(change: Callable[[Call], Any]) -> Iterator[None]:
    """What jvp returns is ``change(call)``."""
    known: dict[str, tuple[Any, ...]] = {}

    def apply(original: Any, cls: Any, *args: Any) -> Any:
        mine = cls.forward

        @functools.wraps(mine)
        def forward(*given: Any) -> Any:
            output = mine(*given)
            known["outputs"] = _tuple(output)
            return output

        known.clear()
        known["inputs"] = args
        with patch.object(cls, "forward", staticmethod(forward)):
            return original(cls, *args)

    def marking(name: str) -> Any:
        def mark(original: Any, ctx: Any, *tensors: Any) -> None:
            known[name] = tensors
            original(ctx, *tensors)

        return mark

    def jvp(original: Any, *given: Any) -> Any:
        call = dict(known)
        return tuple(change(Call(given=given, found=_tuple(original(*given)), **call)))

    marks = ctx_method("mark_dirty", marking("dirty")), ctx_method("mark_non_differentiable", marking("marked"))
    with around_apply(apply), marks[0], marks[1], _around_jvp(jvp):
        yield


def _is_dual(x: Any) -> bool:
    return isinstance(x, torch.Tensor) and forward_ad.unpack_dual(x).tangent is not None


def _primal(x: Any) -> Any:
    return forward_ad.unpack_dual(x).primal if isinstance(x, torch.Tensor) else x


def _floating(x: Any) -> bool:
    return isinstance(x, torch.Tensor) and x.is_floating_point()


def _drops_tangents(original: Any, cls: Any, *args: Any) -> Any:
    missing = cls.jvp is torch.autograd.Function.jvp
    return original(cls, *map(_primal, args)) if missing else original(cls, *args)


def _raises_another(original: Any, *tangents: Any) -> Any:
    try:
        return original(*tangents)
    except NotImplementedError as raised:
        raise RuntimeError(str(raised)) from None


def _nothing_for_zeros(original: Any, *tangents: Any) -> Any:
    return original(*(None if t is not None and t.numel() and not t.any() else t for t in tangents))


def _other_zeros(original: Any, *tangents: Any) -> Any:
    zeros = [t is not None and t.numel() and not t.any() for t in tangents]
    other = [torch.float32 if t is not None and t.dtype == torch.float64 else torch.float64 for t in tangents]
    return original(*(t.to(d) if zero else t for t, zero, d in zip(tangents, zeros, other, strict=True)))


def _always_moves(original: Any, cls: Any, *args: Any) -> Any:
    if forward_ad._current_level < 0 or cls.jvp is torch.autograd.Function.jvp or any(map(_is_dual, args)):
        return original(cls, *args)
    return original(cls, *(forward_ad.make_dual(a, torch.zeros_like(a)) if _floating(a) else a for a in args))


def _without_recording(original: Any, *tangents: Any) -> Any:
    with torch.no_grad():
        return original(*tangents)


def _in_forward_mode(original: Any, *tangents: Any) -> Any:
    with forward_ad._set_fwd_grad_enabled(True):
        return tuple(_primal(t) if _is_dual(t) else t for t in _tuple(original(*tangents)))


def _cut(call: Call) -> Any:
    return call.found[: len(call.outputs)]


def _filled(call: Call) -> Any:
    missing = call.outputs[len(call.found) :]
    return (*call.found, *(torch.zeros_like(y) if _floating(y) else None for y in missing))


def _none_for_integers(call: Call) -> Any:
    return call.each(lambda t, y: t if _floating(y) else None)


def _none_for_marked(call: Call) -> Any:
    return call.each(lambda t, y: None if _contains(call.marked, y) else t)


def _for_none(value: Callable[[Any], Any]) -> AbstractContextManager[Any]:
    """A None from jvp for a differentiable output becomes this value of the output."""

    def filled(call: Call) -> Any:
        def fill(t: Any, y: Any) -> Any:
            return value(y) if t is None and _floating(y) and not _contains(call.marked, y) else t

        return call.each(fill)

    return _changed(filled)


def _fitted(t: Any, y: Any, change: Callable[..., Any]) -> Any:
    if not (isinstance(t, torch.Tensor) and _floating(y)) or t.shape == y.shape:
        return t
    try:
        return change(t, y.shape)
    except RuntimeError:
        return t


def _cast(t: Any, y: Any) -> Any:
    return t.to(y.dtype) if isinstance(t, torch.Tensor) and _floating(y) else t


def _refuses_other_dtypes(t: Any, y: Any) -> Any:
    if isinstance(t, torch.Tensor) and _floating(y) and t.dtype != y.dtype:
        raise RuntimeError(f"expected a tangent of {y.dtype}, got one of {t.dtype}")
    return t


def _memory(t: Any) -> Any:
    return t.untyped_storage().data_ptr() if isinstance(t, torch.Tensor) else None


def _views(call: Call, least: int) -> Any:
    """The tangents, with that of a view of an argument, from position ``least`` on, made a view of its tangent."""

    def view(t: Any, y: Any) -> Any:
        for x, given in list(zip(call.inputs, call.given, strict=True))[least:]:
            same = _memory(y) not in (None, 0) and _memory(x) == _memory(y)
            if same and _memory(t) != _memory(given) and not call.dirty:
                return given.as_strided(y.shape, y.stride(), y.storage_offset())
        return t

    return call.each(view)


def _in_place(call: Call, least: int) -> Any:
    """The tangents, with that of a dirty argument, from position ``least`` on, written into its own tangent."""

    def written(t: Any, y: Any) -> Any:
        for x, given in list(zip(call.inputs, call.given, strict=True))[least:]:
            if x is y and _contains(call.dirty, y):
                return given.copy_(t)
        return t

    return call.each(written)


def _takes_anything(original: Any, ctx: Any, *values: Any) -> None:
    original(ctx, *(v if isinstance(v, torch.Tensor) else None for v in values))


def _leaves_none_out(original: Any, ctx: Any, *tensors: Any) -> None:
    original(ctx, *(t for t in tensors if t is not None))


def _keeps_them(original: Any, ctx: Any, *tensors: Any) -> None:
    ctx.kept_for_forward = tensors
    original(ctx, *tensors)


def _for_jvp_too(original: Any, ctx: Any, *tensors: Any) -> None:
    ctx.save_for_forward(*tensors)
    original(ctx, *tensors)


def _for_backward_too(original: Any, ctx: Any, *tensors: Any) -> None:
    ctx.to_save = tensors
    original(ctx, *tensors)


def _detached(t: Any, _: Any) -> Any:
    return t.detach() if isinstance(t, torch.Tensor) and t.requires_grad else t


def _detaches_arguments(original: Any, *tangents: Any) -> Any:
    return original(*(t if t is None or not t.requires_grad else t.detach() for t in tangents))


def _gradcheck_leaves_jvp_out() -> AbstractContextManager[Any]:
    def change(original: Any) -> Any:
        def check(*args: Any, **options: Any) -> Any:
            return original(*args, **{**options, "check_forward_ad": False})

        return check

    return replaced(import_module("torch.autograd.gradcheck"), "_gradcheck_real_imag", change)


def _gradcheck_aligns_outputs() -> AbstractContextManager[Any]:
    def change(original: Any) -> Any:
        def jacobians(fn: Any, inputs: Any, outputs: Any, **options: Any) -> Any:
            kept = [y.requires_grad for y in _tuple(fn(*inputs))]

            def differentiable(*args: Any) -> Any:
                return tuple(y for y, keep in zip(_tuple(fn(*args)), kept, strict=True) if keep)

            return original(differentiable, inputs, outputs, **options)

        return jacobians

    return replaced(import_module("torch.autograd.gradcheck"), "_get_analytical_jacobian_forward_ad", change)


def _no_deletion(forgives: bool) -> AbstractContextManager[Any]:
    def delete(ctx: Any, name: str) -> None:
        if not forgives:
            raise AttributeError(f"ctx.{name} cannot be deleted")

    return patch.object(BackwardCFunction, "__delattr__", delete)


@contextmanager
def _outliving() -> Iterator[None]:
    """Tangents that were seen once are seen later."""

    def change(original: Any) -> Any:
        def unpack(tensor: Any, **options: Any) -> Any:
            primal, tangent = original(tensor, **options)
            if tangent is not None:
                tensor.seen_tangent = tangent
            return forward_ad.UnpackedDualTensor(primal, getattr(tensor, "seen_tangent", None))

        return unpack

    with replaced(forward_ad, "unpack_dual", change):
        yield


def _nests(original: Any) -> Any:
    return lambda: forward_ad._current_level if forward_ad._current_level >= 0 else original()


def _makes_any_dual(original: Any) -> Any:
    def make(tensor: Any, tangent: Any, **options: Any) -> Any:
        return original(
            *(x if x.is_floating_point() or x.is_complex() else x.float() for x in (tensor, tangent)), **options
        )

    return make


FAULTS = (
    Fault("JVP-01", lambda: around_apply(_drops_tangents)),
    Fault("JVP-01", lambda: _around_jvp(_raises_another), says=("RuntimeError",), words="another exception"),
    Fault("JVP-02", lambda: _around_jvp(_nothing_for_zeros), neighbours=("JVP-14",)),
    Fault("JVP-02", lambda: _around_jvp(_other_zeros), says=("dtypes",), words="zeros of another dtype"),
    Fault("JVP-03", lambda: ctx_method("set_materialize_grads", lambda *_: None)),
    Fault("JVP-04", lambda: around_apply(_always_moves)),
    Fault("JVP-04", lambda: _around_jvp(_without_recording), neighbours=("JVP-14",), words="recording off in jvp"),
    Fault("JVP-04", lambda: _around_jvp(_in_forward_mode), words="forward mode on in jvp"),
    Fault("JVP-05", lambda: _changed(_cut)),
    Fault("JVP-05", lambda: _changed(_filled), words="missing tangents are filled with zeros"),
    Fault("JVP-06", lambda: _changed(_none_for_integers)),
    Fault("JVP-06", lambda: _changed(_none_for_marked), words="a tangent for a marked output is ignored"),
    Fault("JVP-07", lambda: _for_none(torch.ones_like), says=("tangents, position",)),
    Fault("JVP-08", lambda: _changed(lambda call: call.each(functools.partial(_fitted, change=torch.Tensor.expand)))),
    Fault(
        "JVP-08",
        lambda: _changed(lambda call: call.each(functools.partial(_fitted, change=torch.reshape))),
        words="tangents are reshaped",
    ),
    Fault("JVP-09", lambda: _changed(lambda call: call.each(_cast))),
    Fault("JVP-09", lambda: _changed(lambda call: call.each(_refuses_other_dtypes)), words="other dtypes are refused"),
    Fault("JVP-10", lambda: _changed(lambda call: _views(call, 0))),
    Fault("JVP-10", lambda: _changed(lambda call: _views(call, 1)), words="only the first argument is checked"),
    Fault("JVP-11", lambda: _changed(lambda call: _in_place(call, 0))),
    Fault("JVP-11", lambda: _changed(lambda call: _in_place(call, 1)), words="only the first argument is checked"),
    Fault("JVP-12", lambda: ctx_method("save_for_forward", _takes_anything)),
    Fault("JVP-12", lambda: ctx_method("save_for_forward", _leaves_none_out), words="None is left out"),
    Fault("JVP-12", lambda: ctx_method("save_for_forward", _keeps_them), words="kept after the call"),
    Fault("JVP-13", lambda: ctx_method("save_for_backward", _for_jvp_too)),
    Fault("JVP-13", lambda: ctx_method("save_for_forward", _for_backward_too), words="kept for backward too"),
    Fault("JVP-14", lambda: _changed(lambda call: call.each(_detached))),
    Fault("JVP-14", lambda: _around_jvp(_detaches_arguments), words="tangents are detached before jvp"),
    Fault("JVP-14", _gradcheck_leaves_jvp_out, says=("gradcheck",), words="gradcheck leaves jvp out"),
    Fault("JVP-15", lambda: _no_deletion(forgives=False)),
    Fault("JVP-15", lambda: _no_deletion(forgives=True), words="deleting has no effect"),
    Fault("JVP-16", _outliving),
    Fault("JVP-16", lambda: replaced(forward_ad, "enter_dual_level", _nests), words="levels can be nested"),
    Fault("JVP-16", lambda: replaced(forward_ad, "make_dual", _makes_any_dual), words="integers become floating"),
)

FIXES = (
    Fix("JVP-07", lambda: _for_none(torch.zeros_like)),
    Fix("JVP-14", _gradcheck_aligns_outputs, variant="marked"),
)
