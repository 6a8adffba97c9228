"""Faults of transforms within each other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any
from unittest.mock import patch

import torch
import torch.utils.checkpoint
from torch._C._functorch import TransformType, _unwrap_for_grad, _wrap_for_grad
from torch._functorch import autograd_function as rules
from torch._functorch.pyfunctorch import retrieve_current_functorch_interpreter
from torch._functorch.vmap import unwrap_batched
from torch.autograd.forward_ad import _set_fwd_grad_enabled
from torch.utils._pytree import tree_map, tree_map_only

from autograd_conformance.selftests.planted_clauses.definitions import Fix
from autograd_conformance.selftests.planted_clauses.editing import edited
from autograd_conformance.selftests.planted_clauses.intercept import replaced
from autograd_conformance.selftests.planting import Fault


def _tangents(change: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def around(original: Any) -> Any:
        def jvp(*args: Any, **options: Any) -> Any:
            outputs, tangents = original(*args, **options)
            return outputs, tree_map(change, tangents)

        return jvp

    return around


def _with_nested_forward_mode() -> AbstractContextManager[Any]:
    """jvp runs one level further out, where the tangents of that level count."""

    def generate(original: Any) -> Any:
        def generated(interpreter: Any, cls: Any) -> Any:
            level, single = interpreter.level(), original(interpreter, cls)

            def out(values: Any) -> Any:
                return tree_map_only(torch.Tensor, lambda x: _unwrap_for_grad(x, level), values)

            def jvp(ctx: Any, *tangents: Any) -> Any:
                ctx = rules.CtxWithSavedTensors(ctx, out(ctx.saved_tensors))
                with _set_fwd_grad_enabled(True), interpreter.lower():
                    found = cls.jvp(ctx, *out(tangents))
                return tree_map_only(torch.Tensor, lambda t: _wrap_for_grad(t, level), found)

            if interpreter.key() == TransformType.Jvp:
                single.jvp = staticmethod(jvp)
            return single

        return generated

    return replaced(rules, "generate_single_level_function", generate)


def _saved(name: str) -> Callable[..., None]:
    """Saves tensors that all have the batch dimension first, whichever call saves them."""

    def save(ctx: Any, *tensors: Any) -> None:
        size, level = retrieve_current_functorch_interpreter().batch_size(), ctx._pt_current_level
        pairs = [(x, dim) for x, dim in zip(*unwrap_batched(tensors, level), strict=True)]
        batched = [x.expand(size, *x.shape) if dim is None else x.movedim(dim, 0) for x, dim in pairs]
        getattr(ctx._pt_inner_ctx, name)(*batched)
        ctx._pt_saved_tensors_bdims = (0,) * len(tensors)

    return save


def _marked(name: str) -> Callable[..., None]:
    """Marks the tensors that the batched ones are made of."""

    def mark(ctx: Any, *tensors: Any) -> None:
        getattr(ctx._pt_inner_ctx, name)(*unwrap_batched(tensors, ctx._pt_current_level)[0])

    return mark


def _told(**methods: Callable[..., None]) -> AbstractContextManager[Any]:
    """Under a generated rule ctx has these methods."""
    return patch.multiple(rules.CtxCustomSave, **methods, create=True)


def _of_each_call() -> AbstractContextManager[Any]:
    """Under a generated rule every output is batched: to each one zeros are added that are."""

    def vmapify(original: Any) -> Any:
        def vmapified(cls: Any, *args: Any) -> Any:
            def forward(*given: Any) -> Any:
                zero = sum(0 * torch.sum(x) for x in given)
                return tree_map(lambda y: y + zero, cls.forward(*given))

            return original(type(cls)(cls.__name__, (cls,), {"forward": staticmethod(forward)}), *args)

        return vmapified

    return replaced(rules, "vmapify_autograd_function", vmapify)


@contextmanager
def _with_boxed(pack: Callable[..., Any], boxed: bool) -> Iterator[None]:
    """Under transforms the cotangents of a boxed backward are ``pack(*cotangents)``; ``boxed`` is then the flag."""

    def packing(cls: Any) -> Any:
        if not cls.boxed_grads_call or (boxed and hasattr(cls, "packed")):
            return cls
        mine = cls.backward
        packed = {"backward": staticmethod(lambda ctx, *given: mine(ctx, pack(*given)))}
        return type(cls)(cls.__name__, (cls,), {**packed, "boxed_grads_call": boxed, "packed": True})

    def generate(original: Any) -> Any:
        return lambda interpreter, cls: original(interpreter, packing(cls))

    def vmapify(original: Any) -> Any:
        return lambda cls, *args: original(packing(cls), *args)

    with (
        replaced(rules, "generate_single_level_function", generate),
        replaced(rules, "vmapify_autograd_function", vmapify),
    ):
        yield


def _lists() -> AbstractContextManager[Any]:
    return _with_boxed(lambda *cotangents: list(cotangents), boxed=False)


@contextmanager
def _state_of_the_last_forward() -> Iterator[None]:
    """custom_bwd runs backward in the state that the last custom_fwd noted, if its ctx has none."""
    state: dict[str, Any] = {}

    def forward(original: Any) -> Any:
        def custom_fwd(*, device_type: str, **options: Any) -> Any:
            decorate = original(device_type=device_type, **options)

            def decorated(method: Any) -> Any:
                run = decorate(method)

                def noting(*args: Any) -> Any:
                    output = run(*args)
                    state.update({name: getattr(args[0], name) for name in ("_dtype", "_fwd_used_autocast")})
                    return output

                return noting

            return decorated

        return custom_fwd

    def backward(original: Any) -> Any:
        def custom_bwd(*, device_type: str) -> Any:
            decorate = original(device_type=device_type)

            def decorated(method: Any) -> Any:
                run = decorate(method)

                def taking(ctx: Any, *cotangents: Any) -> Any:
                    for name, value in state.items():
                        setattr(ctx, name, value)
                    return run(ctx, *cotangents)

                return taking

            return decorated

        return custom_bwd

    with replaced(torch.amp, "custom_fwd", forward), replaced(torch.amp, "custom_bwd", backward):
        yield


def _the_whole_batch() -> AbstractContextManager[Any]:
    place = "torch._functorch.autograd_function:vmapify_autograd_function"
    return edited(place, "(in_dims, out_dims)", "(None, None)")


def _inner_checkpoints_detach(original: Any) -> Any:
    within: list[Any] = []

    def checkpoint(f: Any, *args: Any, **options: Any) -> Any:
        def inside(*given: Any, **named: Any) -> Any:
            within.append(f)
            try:
                return f(*given, **named)
            finally:
                within.pop()

        output = original(inside, *args, **options)
        return output.detach() if within else output

    return checkpoint


FAULTS = (
    Fault("CKPT-14", lambda: replaced(torch.utils.checkpoint, "checkpoint", _inner_checkpoints_detach)),
    Fault("FUNC-14", lambda: replaced(torch.func, "jvp", _tangents(torch.Tensor.detach))),
    Fault("ONCE-08", lambda: replaced(torch.func, "jvp", _tangents(lambda t: 2 * t))),
    Fault("BOX-05", lambda: _with_boxed(lambda cotangents: tuple(cotangents), boxed=True), says=("tuple",)),
    Fault(
        "AMP-05",
        lambda: edited("torch.amp.autocast_mode:custom_bwd", "args[0]._fwd_used_autocast", "False"),
        neighbours=("AMP-01",),
    ),
    Fault("VMAP-09", _the_whole_batch, neighbours=("VMAP-02", "VMAP-08")),
)


def _each_cotangent(original: Any) -> Any:
    """``autograd.grad`` that takes each cotangent of a batch by itself."""

    def grad(
        outputs: Any, inputs: Any, cotangents: Any = None, *, is_grads_batched: bool = False, **options: Any
    ) -> Any:
        if not is_grads_batched:
            return original(outputs, inputs, cotangents, **options)
        rows = [original(outputs, inputs, g, retain_graph=True, **options) for g in cotangents]
        return tuple(map(torch.stack, zip(*rows, strict=True)))

    return grad


FIXES = (
    Fix("VMAP-07", lambda: replaced(torch.autograd, "grad", _each_cotangent), variant="calling"),
    Fix("FUNC-14", _with_nested_forward_mode, variant="forward"),
    Fix("BOX-05", _lists),
    Fix("AMP-05", _state_of_the_last_forward),
    Fix(
        "VMAP-09",
        lambda: _told(save_for_backward=_saved("save_for_backward"), save_for_forward=_saved("save_for_forward")),
        variant="saved",
    ),
    Fix("VMAP-02", _of_each_call, variant="shared-output"),
    Fix("VMAP-09", lambda: _told(mark_non_differentiable=_marked("mark_non_differentiable")), variant="marked"),
    Fix("VMAP-09", lambda: _told(mark_dirty=_marked("mark_dirty")), variant="dirty"),
)
