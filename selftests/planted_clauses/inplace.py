"""Faults of in-place changes."""

from __future__ import annotations

import gc
import warnings
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any
from unittest.mock import patch

import torch

from autograd_conformance.selftests.planted_clauses.definitions import Fix
from autograd_conformance.selftests.planted_clauses.intercept import around_apply, ctx_method, replaced
from autograd_conformance.selftests.planting import Fault


def after_forward(action: Callable[[Any, Sequence[Any], Any], None]) -> AbstractContextManager[Any]:
    """``action(ctx, arguments, outputs)`` follows the forward, or the setup_context, of every call."""

    def apply(original: Any, cls: Any, *args: Any, **kwargs: Any) -> Any:
        separate = cls.setup_context is not torch.autograd.Function.setup_context
        name = "setup_context" if separate else "forward"
        mine = getattr(cls, name)

        def forward(ctx: Any, *given: Any, **named: Any) -> Any:
            outputs = mine(ctx, *given, **named)
            action(ctx, given, outputs)
            return outputs

        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            mine(ctx, inputs, output)
            action(ctx, inputs, output)

        with patch.object(cls, name, staticmethod(setup_context if separate else forward)):
            return original(cls, *args, **kwargs)

    return around_apply(apply)


def dirty_of(ctx: Any) -> tuple[Any, ...]:
    """The tensors that were marked dirty."""
    return tuple(ctx.dirty_tensors or ())


def outputs_of(result: Any) -> tuple[Any, ...]:
    return result if isinstance(result, tuple) else (result,)


def tensors_of(values: Sequence[Any]) -> list[Any]:
    return [x for x in values if isinstance(x, torch.Tensor)]


def among(tensors: Sequence[Any], tensor: Any) -> bool:
    return any(t is tensor for t in tensors)


def with_outputs(change: Callable[[Any, int, Sequence[Any]], Any]) -> AbstractContextManager[Any]:
    """Each output tensor of apply becomes ``change(output, position, arguments)``."""

    def apply(original: Any, cls: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(cls, *args, **kwargs)
        found = tuple(
            change(y, i, tensors_of(args)) if isinstance(y, torch.Tensor) else y
            for i, y in enumerate(outputs_of(result))
        )
        return found if isinstance(result, tuple) else found[0]

    return around_apply(apply)


def set_version(tensor: Any, version: int) -> None:
    torch._C._autograd._unsafe_set_version_counter((tensor,), (version,))


def accepting(words: str, *, which: Callable[[Sequence[Any]], bool] = lambda _: True) -> AbstractContextManager[Any]:
    """An apply that raises an error with these words gives its tensor arguments instead."""

    def apply(original: Any, cls: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return original(cls, *args, **kwargs)
        except RuntimeError as error:
            if words in str(error) and which(tensors_of(args)):
                return tuple(tensors_of(args))
            raise

    return around_apply(apply)


# --- identity and version --------------------------------------------------------------------------------------------


def _another_object(output: Any, _: int, arguments: Sequence[Any]) -> Any:
    return output.view_as(output) if output.grad_fn is not None and among(arguments, output) else output


def with_dirty(action: Callable[[Any, int], None]) -> AbstractContextManager[Any]:
    """``action(argument, its version before)`` follows apply for each argument that was marked dirty."""

    def apply(original: Any, cls: Any, *args: Any, **kwargs: Any) -> Any:
        marked: list[Any] = []
        before = [(x, x._version) for x in tensors_of(args)]

        def mark(mark_dirty: Any, ctx: Any, *tensors: Any) -> None:
            marked.extend(tensors)
            mark_dirty(ctx, *tensors)

        with ctx_method("mark_dirty", mark):
            result = original(cls, *args, **kwargs)
        for x, version in before:
            if among(marked, x):
                action(x, version)
        return result

    return around_apply(apply)


def _not_counted(x: Any, _: int) -> None:
    set_version(x, x._version - 1)


def _not_counted_for_scalars(x: Any, _: int) -> None:
    if not x.dim():
        set_version(x, x._version - 1)


def _counted_once(x: Any, before: int) -> None:
    set_version(x, min(x._version, before + 1))


def _put_back(x: Any, before: int) -> None:
    # The versions of views say whether they have to be derived again.
    if not x._is_view() and x._base is None:
        set_version(x, before)


def _only_the_first(output: Any, _: int, arguments: Sequence[Any]) -> Any:
    returned = [x for x in arguments if x.grad_fn is not None and x.grad_fn is output.grad_fn]
    return output.detach_() if among(returned[1:], output) else output


# --- history ---------------------------------------------------------------------------------------------------------


def _spares_the_base(original: Any, cls: Any, *args: Any) -> Any:
    copies = [x.clone() if isinstance(x, torch.Tensor) and x._is_view() and x._base.grad_fn else x for x in args]
    result = original(cls, *copies)
    for x, copy in zip(args, copies, strict=True):
        if x is not copy:
            x.data.copy_(copy.data)
    return result


def _forgets_the_rest(original: Any, cls: Any, *args: Any) -> Any:
    result = original(cls, *args)
    for x in tensors_of(args):
        if x._is_view() and type(x._base.grad_fn).__name__ == "CopySlices":
            inside = torch.zeros_like(x._base)
            inside.as_strided(x.size(), x.stride(), x.storage_offset()).fill_(1)
            x._base.register_hook(lambda g, inside=inside: g * inside)
    return result


def _marks_by_itself(ctx: Any, arguments: Sequence[Any], outputs: Any) -> None:
    returned = [y for y in outputs_of(outputs) if among(arguments, y) and y._version > 0]
    ctx.mark_dirty(*dirty_of(ctx), *(y for y in returned if not among(dirty_of(ctx), y)))


def _stays_out(original: Any, cls: Any, *args: Any) -> Any:
    fixed = [x for x in tensors_of(args) if not x.requires_grad]
    result = original(cls, *args)
    for x in fixed:
        x.detach_()
    return result


def _the_leaf_itself(output: Any, _: int, arguments: Sequence[Any]) -> Any:
    same = [x for x in arguments if x.untyped_storage().data_ptr() == output.untyped_storage().data_ptr()]
    return same[0] if same and not torch.is_grad_enabled() else output


def _differentiable_after_all(ctx: Any, _: Sequence[Any], __: Any) -> None:
    constant = tuple(t for t in ctx.non_differentiable or () if not among(dirty_of(ctx), t))
    ctx.mark_non_differentiable(*constant)


def _saving_is_a_change(original: Any, cls: Any, *args: Any) -> Any:
    saved: list[Any] = []

    def save(save_for_backward: Any, ctx: Any, *tensors: Any) -> None:
        saved.extend(t for t in tensors if among(dirty_of(ctx), t))
        save_for_backward(ctx, *tensors)

    with ctx_method("save_for_backward", save):
        result = original(cls, *args)
    for x in saved:
        torch.autograd.graph.increment_version(x)
    return result


@contextmanager
def _hooks(*, moving: bool) -> Iterator[None]:
    """Hooks move to the new grad_fn when their tensor is changed, or new ones join the old grad_fn."""
    registered: list[tuple[Any, Any, Any]] = []
    nodes: dict[int, Any] = {}

    def register(original: Any) -> Any:
        def register_hook(tensor: Any, hook: Any) -> Any:
            if moving:
                registered.append((weakref.ref(tensor), hook, original(tensor, hook)))
                return registered[-1][2]
            node, index = nodes.setdefault(id(tensor), (tensor.grad_fn, tensor.output_nr))
            return node.register_prehook(lambda grads: hook(grads[index]))

        return register_hook

    def apply(original: Any, cls: Any, *args: Any) -> Any:
        for x in tensors_of(args):
            nodes.setdefault(id(x), (x.grad_fn, x.output_nr))
        result = original(cls, *args)
        for tensor, hook, handle in [*registered]:
            if among(outputs_of(result), tensor()):
                handle.remove()
                tensor().register_hook(hook)
        return result

    with replaced(torch.Tensor, "register_hook", register), around_apply(apply):
        yield


# --- errors ----------------------------------------------------------------------------------------------------------


def _a_view(arguments: Sequence[Any]) -> bool:
    return any(x._is_view() for x in arguments)


def _silent(original: Any, cls: Any, *args: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return original(cls, *args)


def _skips_other_objects(original: Any, ctx: Any, *tensors: Any) -> None:
    original(ctx, *tensors_of(tensors))


# --- fixes -----------------------------------------------------------------------------------------------------------


@contextmanager
def _counts_references() -> Iterator[None]:
    """A dirty tensor must be the only one on its storage."""

    def check(ctx: Any, _: Sequence[Any], __: Any) -> None:
        gc.collect()
        for x in dirty_of(ctx):
            others = [t for t in gc.get_objects() if type(t) is torch.Tensor and t.layout is x.layout and t is not x]
            if any(t.untyped_storage()._cdata == x.untyped_storage()._cdata for t in others):
                raise RuntimeError("another tensor refers to the storage of a tensor that is modified in place")

    # Only what is made from now on is looked at.
    gc.freeze()
    try:
        with after_forward(check):
            yield
    finally:
        gc.unfreeze()


def _puts_views_first(original: Any, cls: Any, *args: Any) -> Any:
    """A Function is called with its view in front, and finds its arguments in the order that it has."""
    views = [i for i, x in enumerate(args) if isinstance(x, torch.Tensor) and x._is_view()]
    order = [*views, *(i for i in range(len(args)) if i not in views)]

    def back(given: Sequence[Any]) -> tuple[Any, ...]:
        return tuple(given[order.index(i)] for i in range(len(args)))

    methods = {
        "forward": lambda ctx, *given: cls.forward(ctx, *back(given)),
        "backward": lambda ctx, *cotangents: tuple(cls.backward(ctx, *cotangents)[i] for i in order),
    }
    if cls.setup_context is not torch.autograd.Function.setup_context:
        methods["forward"] = lambda *given: cls.forward(*back(given))
        methods["setup_context"] = lambda ctx, inputs, output: cls.setup_context(ctx, back(inputs), output)
    namespace = {name: staticmethod(method) for name, method in methods.items()}
    return original(type(cls)(cls.__name__, (cls,), namespace), *(args[i] for i in order))


FAULTS = (
    Fault("DIRTY-01", lambda: with_outputs(_another_object), neighbours=("DIRTY-11", "DIRTY-14", "DIRTY-15")),
    Fault(
        "DIRTY-01",
        lambda: with_outputs(_only_the_first),
        neighbours=("DIRTY-11", "DIRTY-14", "DIRTY-15"),
        words="only the first of several dirty inputs gets the grad_fn",
    ),
    Fault("DIRTY-02", lambda: with_dirty(_not_counted), neighbours=("DIRTY-15",)),
    Fault(
        "DIRTY-02",
        lambda: with_dirty(_counted_once),
        neighbours=("DIRTY-15",),
        words="a change that autograd saw is not counted again",
    ),
    Fault(
        "DIRTY-02",
        lambda: with_dirty(_not_counted_for_scalars),
        neighbours=("DIRTY-15",),
        words="a mark of a scalar does not count",
    ),
    Fault("DIRTY-03", lambda: with_dirty(_put_back), neighbours=("DIRTY-02", "DIRTY-06", "DIRTY-15")),
    Fault(
        "DIRTY-04",
        lambda: accepting(
            "a leaf Variable that requires grad has been", which=lambda arguments: not _a_view(arguments)
        ),
    ),
    Fault("DIRTY-05", lambda: accepting("a view of a leaf")),
    Fault("DIRTY-05", lambda: accepting("returns multiple views"), words="outputs of chunk may be marked dirty"),
    Fault(
        "DIRTY-05",
        lambda: accepting("a leaf Variable that requires grad has been", which=_a_view),
        words="views under no_grad may be marked",
    ),
    Fault("DIRTY-06", lambda: around_apply(_spares_the_base), neighbours=("DIRTY-05", "DIRTY-07")),
    Fault(
        "DIRTY-06",
        lambda: around_apply(_forgets_the_rest),
        words="the base gets no gradient where the view does not reach",
    ),
    Fault("DIRTY-07", lambda: accepting("modifies inplace an input that is a view")),
    Fault("DIRTY-08", lambda: accepting("were not returned as output")),
    Fault("DIRTY-09", lambda: around_apply(_silent)),
    Fault(
        "DIRTY-09",
        lambda: ctx_method("mark_dirty", _skips_other_objects),
        words="mark_dirty skips a non-tensor",
    ),
    Fault("DIRTY-10", lambda: after_forward(_marks_by_itself), neighbours=("DIRTY-02",)),
    Fault("DIRTY-11", lambda: around_apply(_stays_out), neighbours=("DIRTY-01", "DIRTY-14")),
    Fault("DIRTY-12", lambda: with_outputs(_the_leaf_itself)),
    Fault("DIRTY-14", lambda: after_forward(_differentiable_after_all)),
    Fault("DIRTY-15", lambda: around_apply(_saving_is_a_change)),
    Fault("DIRTY-17", lambda: _hooks(moving=True)),
    Fault("DIRTY-17", lambda: _hooks(moving=False), words="later hooks join the old grad_fn"),
)

FIXES = (
    Fix("DIRTY-06", lambda: around_apply(_puts_views_first), variant="behind-others"),
    Fix("DIRTY-13"),
    Fix("DIRTY-16", _counts_references),
)
