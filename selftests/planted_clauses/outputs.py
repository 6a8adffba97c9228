"""Faults of outputs: which of them require grad, and what backward gets for those that are not used."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any
from unittest.mock import patch

import torch
from torch.autograd.function import BackwardCFunction

from autograd_conformance.selftests.planted_clauses.intercept import (
    around_apply,
    around_backward,
    around_backward_with_graph,
    ctx_method,
    replaced,
)
from autograd_conformance.selftests.planting import Fault


def _each_output(change: Callable[[Any], Any]) -> AbstractContextManager[Any]:
    """Every tensor that apply gives is changed."""

    def apply(original: Any, cls: Any, *args: Any, **kwargs: Any) -> Any:
        outputs = original(cls, *args, **kwargs)
        if not isinstance(outputs, tuple):
            return change(outputs) if isinstance(outputs, torch.Tensor) else outputs
        return tuple(change(y) if isinstance(y, torch.Tensor) else y for y in outputs)

    return around_apply(apply)


def _each_cotangent(change: Callable[[Any, int, Any], Any]) -> AbstractContextManager[Any]:
    """What backward gets is ``change(ctx, position, cotangent)``."""
    return around_backward(
        lambda original, ctx, *cotangents: original(ctx, *(change(ctx, i, g) for i, g in enumerate(cotangents)))
    )


def _as_floats(y: torch.Tensor) -> torch.Tensor:
    return y if y.is_floating_point() or y.is_complex() else y.double().requires_grad_()


def _split_duplicates(original: Any, cls: Any, *args: Any) -> Any:
    outputs = original(cls, *args)
    return tuple(y.view_as(y) if any(y is z for z in outputs[:i]) else y for i, y in enumerate(outputs))


@contextmanager
def _first_position_counts() -> Iterator[None]:
    def apply(original: Any, cls: Any, *args: Any) -> Any:
        outputs = original(cls, *args)
        first = {id(y): i for i, y in reversed(list(enumerate(outputs)))}
        if outputs[0].grad_fn is not None:
            outputs[0].grad_fn.swaps = {y.output_nr: first[id(y)] for y in outputs}
        return outputs

    def backward(original: Any, ctx: Any, *cotangents: Any) -> Any:
        given = list(cotangents)
        for late, early in ctx.swaps.items():
            given[late], given[early] = given[early], given[late]
        return original(ctx, *given)

    with around_apply(apply), around_backward(backward):
        yield


def _cannot_be_changed(original: Any, cls: Any, *args: Any) -> Any:
    outputs = original(cls, *args)
    return tuple(y.unsqueeze(0).unbind()[0] for y in outputs) if cls.__name__ == "Polynomial" else outputs


def _changes_unrecorded(_: Any) -> Any:
    def change(x: Any, factor: Any) -> Any:
        with torch.no_grad():
            return x.mul_(factor)

    return change


def _plain(y: torch.Tensor) -> torch.Tensor:
    return y if type(y) is torch.Tensor else y.as_subclass(torch.Tensor)


def _parameters_for_parameters(original: Any, cls: Any, *args: Any) -> Any:
    outputs = original(cls, *args)
    wraps = any(isinstance(x, torch.nn.Parameter) for x in args)
    return tuple(torch.nn.Parameter(y.detach()) for y in outputs) if wraps else outputs


@contextmanager
def _with_marks(change: Callable[[Any, Any, Any], Any]) -> Iterator[None]:
    """What apply gives is ``change(args, outputs, marked)``."""
    marked: list[Any] = []

    def mark(original: Any, ctx: Any, *tensors: Any) -> None:
        marked.extend(tensors)
        original(ctx, *tensors)

    def apply(original: Any, cls: Any, *args: Any) -> Any:
        marked.clear()
        return change(args, original(cls, *args), marked)

    with ctx_method("mark_non_differentiable", mark), around_apply(apply):
        yield


def _marks_spread(_: Any, outputs: Any, marked: Any) -> Any:
    return tuple(y.detach() for y in outputs) if any(_is_returned(x, outputs) for x in marked) else outputs


def _is_returned(x: Any, outputs: Any) -> bool:
    return any(x.data_ptr() == y.data_ptr() for y in outputs)


def _refuses_others(_: Any, outputs: Any, marked: Any) -> Any:
    if not all(_is_returned(x, outputs) for x in marked):
        raise RuntimeError("mark_non_differentiable: a tensor is not returned")
    return outputs


def _marks_the_input(args: Any, outputs: Any, marked: Any) -> Any:
    for x in args:
        if any(x is m for m in marked) and _is_returned(x, outputs) and x.is_leaf:
            x.requires_grad_(False)
    return outputs


@contextmanager
def _for_constants(change: Callable[[Any, Any, Any], Any]) -> Iterator[None]:
    """What backward gets for an output that does not require grad is ``change(ctx, output, cotangent)``."""

    def apply(original: Any, cls: Any, *args: Any) -> Any:
        outputs = original(cls, *args)
        for y in outputs:
            if y.grad_fn is not None:
                y.grad_fn.constants = {i: z for i, z in enumerate(outputs) if not z.requires_grad}
        return outputs

    def given(ctx: Any, position: int, g: Any) -> Any:
        return change(ctx, ctx.constants[position], g) if position in ctx.constants else g

    with around_apply(apply), _each_cotangent(given):
        yield


def _silent_backward(original: Any) -> Any:
    def backward(tensors: Any, *args: Any, **options: Any) -> Any:
        given = [tensors] if isinstance(tensors, torch.Tensor) else tensors
        return original(tensors, *args, **options) if any(y.requires_grad for y in given) else None

    return backward


def _leaves_if_all_are_marked(original: Any, cls: Any, *args: Any) -> Any:
    outputs = original(cls, *args)
    if not any(y.requires_grad for y in outputs):
        for y in outputs:
            y.requires_grad_(y.is_floating_point())
    return outputs


def _setting_non_diff(change: Callable[[Any, bool], None]) -> AbstractContextManager[Any]:
    name = "_materialize_non_diff_grads"
    return patch.object(BackwardCFunction, name, property(lambda _: True, change), create=True)


@contextmanager
def _noting_settings(change: Callable[[Any, Any, bool], Any]) -> Iterator[None]:
    """What backward gets is ``change(output position, cotangent, whether set_materialize_grads was called)``."""

    def note(original: Any, ctx: Any, value: Any) -> None:
        ctx.was_set = True
        original(ctx, value)

    def given(ctx: Any, position: int, g: Any) -> Any:
        return change(position, g, hasattr(ctx, "was_set"))

    with ctx_method("set_materialize_grads", note), _each_cotangent(given):
        yield


def _expanded(_: Any, __: int, g: Any) -> Any:
    return g.new_zeros(()).expand(g.shape) if g is not None and _is_zeros(g) else g


def _none_by_default(_: int, g: Any, was_set: bool) -> Any:
    return g if was_set or g is None or g.any() else None


def _none_for_zero(original: Any, ctx: Any, *cotangents: Any) -> Any:
    return original(ctx, *(None if _is_zeros(g) else g for g in cotangents))


def _none_once_it_ran(original: Any, ctx: Any, *cotangents: Any) -> Any:
    again, ctx.ran = hasattr(ctx, "ran"), True
    return (_none_for_zero if again else lambda run, *given: run(*given))(original, ctx, *cotangents)


def _only_in_forward(original: Any, ctx: Any, value: Any) -> None:
    separate = ctx._forward_cls.setup_context is not torch.autograd.Function.setup_context
    original(ctx, value)
    if separate:
        original(ctx, True)


def _first_setting_counts(original: Any, ctx: Any, value: Any) -> None:
    if not hasattr(ctx, "was_set"):
        original(ctx, value)
    ctx.was_set = True


def _is_zeros(g: Any) -> bool:
    return g is None or (g.numel() > 0 and not g.any())


def _skips_zeros(original: Any, ctx: Any, *cotangents: Any) -> Any:
    return None if all(map(_is_zeros, cotangents)) else original(ctx, *cotangents)


def _none_for_zeros(original: Any, ctx: Any, *cotangents: Any) -> Any:
    return original(ctx, *((None,) * len(cotangents) if all(map(_is_zeros, cotangents)) else cotangents))


def _filled(cotangents: Any) -> tuple[Any, ...]:
    return tuple(torch.zeros(()) if g is None else g for g in cotangents)


def _hook_sees_zeros(original: Any, ctx: Any, hook: Any) -> Any:
    return original(ctx, lambda gradients, cotangents: hook(gradients, _filled(cotangents)))


FAULTS = (
    Fault("OUT-01", lambda: _each_output(lambda y: y.detach() if y.is_complex() else y), says=("complex",)),
    Fault(
        "OUT-01",
        lambda: _each_output(lambda y: y if y.numel() else y.detach()),
        neighbours=("OUT-02", "OUT-04"),
        words="outputs without elements do not require grad",
    ),
    Fault(
        "OUT-01",
        lambda: _each_output(lambda y: y.detach() if y.element_size() == 1 else y),
        says=("float8",),
        words="8-bit outputs do not require grad",
    ),
    Fault("OUT-02", lambda: _each_output(_as_floats), says=("int",)),
    Fault("OUT-03", lambda: around_apply(_split_duplicates), says=("same object",)),
    Fault("OUT-03", _first_position_counts, says=("cotangents",), words="its gradient arrives at the first position"),
    Fault("OUT-04", lambda: around_apply(_cannot_be_changed)),
    Fault(
        "OUT-04",
        lambda: replaced(torch.Tensor, "__imul__", _changes_unrecorded),
        says=("gradients",),
        words="an in-place change is not recorded",
    ),
    Fault("OUT-05", lambda: _each_output(_plain), says=("Marked",)),
    Fault(
        "OUT-05",
        lambda: around_apply(_parameters_for_parameters),
        says=("Parameter",),
        words="a call on a Parameter gives Parameters",
    ),
    Fault("ND-01", lambda: _with_marks(_marks_spread), neighbours=("ND-02", "ND-03", "ND-06", "ND-07")),
    Fault(
        "ND-01",
        lambda: ctx_method("mark_non_differentiable", lambda original, ctx, *tensors: original(ctx, *tensors[:1])),
        neighbours=("ND-04", "ND-05", "ND-06", "ND-07"),
        words="only the first of the tensors is marked",
    ),
    Fault(
        "ND-02",
        lambda: _for_constants(lambda _, y, g: None if g is None else y.new_zeros(())),
        says=("cotangents",),
        neighbours=("ND-07",),
    ),
    Fault(
        "ND-02",
        lambda: _for_constants(lambda _, y, g: None if g is None else torch.zeros(y.shape)),
        says=("dtypes",),
        neighbours=("ND-07",),
        words="the zeros are float32",
    ),
    Fault(
        "ND-03",
        lambda: _for_constants(lambda _, y, g: torch.zeros_like(y) if g is None else g),
        says=("None",),
        neighbours=("ND-07",),
    ),
    Fault(
        "ND-04",
        lambda: ctx_method(
            "mark_non_differentiable",
            lambda original, ctx, *tensors: original(ctx, *(x for x in tensors if isinstance(x, torch.Tensor))),
        ),
        says=("no error",),
    ),
    Fault("ND-04", lambda: _with_marks(_refuses_others), words="a tensor that is not returned is an error"),
    Fault("ND-05", lambda: replaced(torch.autograd, "backward", _silent_backward), says=("no error",)),
    Fault(
        "ND-05",
        lambda: around_apply(_leaves_if_all_are_marked),
        neighbours=("ND-06",),
        words="the outputs become leaves that require grad",
    ),
    Fault("ND-06", lambda: _with_marks(_marks_the_input), says=("inputs",)),
    Fault(
        "ND-06",
        lambda: _each_output(lambda y: y if y.requires_grad else y.clone()),
        says=("memory",),
        words="a returned input that is marked comes back as a copy",
    ),
    Fault("ND-07", lambda: _setting_non_diff(lambda *_: None), says=("cotangents",)),
    Fault(
        "ND-07",
        lambda: _setting_non_diff(lambda ctx, flag: ctx.set_materialize_grads(flag)),
        says=("cotangents",),
        words="it switches materialization off for all outputs",
    ),
    Fault("MAT-01", lambda: _noting_settings(_none_by_default), says=("None",), neighbours=("MAT-05",)),
    Fault(
        "MAT-01",
        lambda: _each_cotangent(_expanded),
        says=("strides",),
        words="the zeros are one expanded number",
    ),
    Fault(
        "MAT-01",
        lambda: around_backward_with_graph(_none_for_zero),
        neighbours=("MAT-02", "MAT-04"),
        words="it is None under create_graph",
    ),
    Fault("MAT-01", lambda: around_backward(_none_once_it_ran), words="it is None in later passes"),
    Fault("MAT-02", lambda: ctx_method("set_materialize_grads", _only_in_forward), neighbours=("MAT-04",)),
    Fault("MAT-02", lambda: ctx_method("set_materialize_grads", _first_setting_counts), words="the first call counts"),
    Fault(
        "MAT-03",
        lambda: ctx_method("set_materialize_grads", lambda original, ctx, value: original(ctx, bool(value))),
        says=("no error",),
    ),
    Fault("MAT-04", lambda: around_backward(_skips_zeros), says=("number of calls",)),
    Fault("MAT-04", lambda: around_backward_with_graph(_skips_zeros), words="it is skipped under create_graph"),
    Fault("MAT-04", lambda: around_backward(_none_for_zeros), says=("None",), words="it gets None whatever was set"),
    Fault("MAT-05", lambda: ctx_method("register_hook", _hook_sees_zeros), says=("in the hook",)),
    Fault(
        "MAT-05",
        lambda: ctx_method(
            "register_prehook",
            lambda original, ctx, hook: original(ctx, lambda cotangents: hook(_filled(cotangents))),
        ),
        says=("in the prehook",),
        words="prehooks on a node see zeros",
    ),
)
