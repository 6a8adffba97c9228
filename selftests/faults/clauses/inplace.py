"""Faults of in-place changes."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from typing import Any

import torch

from autograd_conformance.selftests.faults import plants
from autograd_conformance.selftests.faults.clauses.definitions import Fix
from autograd_conformance.selftests.faults.planting import Plant, fault
from autograd_conformance.selftests.faults.plants import among, around_apply, ctx_method, tensors_of, tupled


def dirty_of(ctx: Any) -> tuple[Any, ...]:
    """The tensors that were marked dirty."""
    return tuple(ctx.dirty_tensors or ())


def with_outputs(change: Callable[[Any, int, Sequence[Any]], Any]) -> Plant:
    """Each output tensor of apply becomes ``change(output, position, arguments)``."""

    def apply(original, cls, *args, **kwargs):
        found = original(cls, *args, **kwargs)
        several = tuple(
            change(y, i, tensors_of(args)) if isinstance(y, torch.Tensor) else y for i, y in enumerate(tupled(found))
        )
        return several if isinstance(found, tuple) else several[0]

    return around_apply(apply)


def _versions(change):
    """The version of an argument that was marked dirty is ``change(it, the version before)`` after apply."""

    def apply(original, cls, *args, **kwargs):
        marked = []
        before = [(x, x._version) for x in tensors_of(args)]

        def mark(mark_dirty, ctx, *tensors):
            marked.extend(tensors)
            mark_dirty(ctx, *tensors)

        with ctx_method("mark_dirty", mark)():
            found = original(cls, *args, **kwargs)
        for x, version in before:
            if among(marked, x):
                torch._C._autograd._unsafe_set_version_counter((x,), (change(x, version),))
        return found

    return around_apply(apply)


def _accepting(words, which=lambda _: True):
    """An apply that raises an error with these words gives its tensor arguments instead."""
    gives = plants.rescued(lambda _, *args: tuple(tensors_of(args)), says=words)
    return around_apply(plants.where(lambda _, *args: which(tensors_of(args)), gives))


def _another_object(output, _, arguments):
    return output.view_as(output) if output.grad_fn is not None and among(arguments, output) else output


def _put_back(x, before):
    # The versions of views say whether they have to be derived again.
    return before if not x._is_view() and x._base is None else x._version


def _only_the_first(output, _, arguments):
    returned = [x for x in arguments if x.grad_fn is not None and x.grad_fn is output.grad_fn]
    return output.detach_() if among(returned[1:], output) else output


def _spares_the_base(original, cls, *args):
    copies = [x.clone() if isinstance(x, torch.Tensor) and x._is_view() and x._base.grad_fn else x for x in args]
    found = original(cls, *copies)
    for x, copy in zip(args, copies, strict=True):
        if x is not copy:
            x.data.copy_(copy.data)
    return found


def _forgets_the_rest(original, cls, *args):
    found = original(cls, *args)
    for x in tensors_of(args):
        if x._is_view() and type(x._base.grad_fn).__name__ == "CopySlices":
            inside = torch.zeros_like(x._base)
            inside.as_strided(x.size(), x.stride(), x.storage_offset()).fill_(1)
            x._base.register_hook(lambda g, inside=inside: g * inside)
    return found


def _marks_by_itself(ctx, arguments, outputs):
    returned = [y for y in tupled(outputs) if among(arguments, y) and y._version > 0]
    ctx.mark_dirty(*dirty_of(ctx), *(y for y in returned if not among(dirty_of(ctx), y)))


def _stays_out(original, cls, *args):
    fixed = [x for x in tensors_of(args) if not x.requires_grad]
    found = original(cls, *args)
    for x in fixed:
        x.detach_()
    return found


def _the_leaf_itself(output, _, arguments):
    same = [x for x in arguments if x.untyped_storage().data_ptr() == output.untyped_storage().data_ptr()]
    return same[0] if same and not torch.is_grad_enabled() else output


def _differentiable_after_all(ctx, *_):
    ctx.mark_non_differentiable(*(t for t in ctx.non_differentiable or () if not among(dirty_of(ctx), t)))


def _saving_is_a_change(original, cls, *args):
    saved = []

    def save(save_for_backward, ctx, *tensors):
        saved.extend(t for t in tensors if among(dirty_of(ctx), t))
        save_for_backward(ctx, *tensors)

    with ctx_method("save_for_backward", save)():
        found = original(cls, *args)
    for x in saved:
        torch.autograd.graph.increment_version(x)
    return found


def _hooks_move():
    """Hooks move to the new grad_fn when their tensor is changed."""
    registered = []

    def register(original, tensor, hook):
        registered.append((weakref.ref(tensor), hook, original(tensor, hook)))
        return registered[-1][2]

    def moved(found):
        for tensor, hook, handle in [*registered]:
            if among(tupled(found), tensor()):
                handle.remove()
                tensor().register_hook(hook)
        return found

    return plants.all_of(plants.wrapped(torch.Tensor, "register_hook", register), plants.outputs(moved))


def _hooks_join_the_old_node():
    """New hooks join the grad_fn that their tensor had before it was changed."""
    nodes = {}

    def register(_, tensor, hook):
        node, index = nodes.setdefault(id(tensor), (tensor.grad_fn, tensor.output_nr))
        return node.register_prehook(lambda grads: hook(grads[index]))

    def note(args):
        for x in tensors_of(args):
            nodes.setdefault(id(x), (x.grad_fn, x.output_nr))
        return args

    return plants.all_of(plants.wrapped(torch.Tensor, "register_hook", register), plants.called_with(note))


def _a_view(arguments):
    return any(x._is_view() for x in arguments)


# --- fixes -----------------------------------------------------------------------------------------------------------


@contextmanager
def _counts_references():
    """A dirty tensor must be the only one on its storage."""

    def check(ctx, *_):
        gc.collect()
        for x in dirty_of(ctx):
            others = [t for t in gc.get_objects() if type(t) is torch.Tensor and t.layout is x.layout and t is not x]
            if any(t.untyped_storage()._cdata == x.untyped_storage()._cdata for t in others):
                raise RuntimeError("another tensor refers to the storage of a tensor that is modified in place")

    # Only what is made from now on is looked at.
    gc.freeze()
    try:
        with plants.after_forward(check)():
            yield
    finally:
        gc.unfreeze()


def _puts_views_first(original, cls, *args):
    """A Function is called with its view in front, and finds its arguments in the order that it has."""
    views = [i for i, x in enumerate(args) if isinstance(x, torch.Tensor) and x._is_view()]
    order = [*views, *(i for i in range(len(args)) if i not in views)]

    def back(given):
        return tuple(given[order.index(i)] for i in range(len(args)))

    methods = {
        "forward": lambda ctx, *given: cls.forward(ctx, *back(given)),
        "backward": lambda ctx, *cotangents: tuple(cls.backward(ctx, *cotangents)[i] for i in order),
    }
    if plants.separate(cls):
        methods["forward"] = lambda *given: cls.forward(*back(given))
        methods["setup_context"] = lambda ctx, inputs, output: cls.setup_context(ctx, back(inputs), output)
    return original(plants.subclass(cls, **methods), *(args[i] for i in order))


_LEAF = "a leaf Variable that requires grad has been"

FAULTS = (
    fault("DIRTY-01", with_outputs(_another_object), neighbours=plants.numbers("DIRTY", 11, 14, 15)),
    fault(
        "DIRTY-01: only the first of several dirty inputs gets the grad_fn",
        with_outputs(_only_the_first),
        neighbours=plants.numbers("DIRTY", 11, 14, 15),
    ),
    fault("DIRTY-02", _versions(lambda x, _: x._version - 1), neighbours=("DIRTY-15",)),
    fault(
        "DIRTY-02: a change that autograd saw is not counted again",
        _versions(lambda x, before: min(x._version, before + 1)),
        neighbours=("DIRTY-15",),
    ),
    fault(
        "DIRTY-02: a mark of a scalar does not count",
        _versions(lambda x, _: x._version if x.dim() else x._version - 1),
        neighbours=("DIRTY-15",),
    ),
    fault("DIRTY-03", _versions(_put_back), neighbours=plants.numbers("DIRTY", 2, 6, 15)),
    fault("DIRTY-04", _accepting(_LEAF, which=lambda arguments: not _a_view(arguments))),
    fault("DIRTY-05", _accepting("a view of a leaf")),
    fault("DIRTY-05: outputs of chunk may be marked dirty", _accepting("returns multiple views")),
    fault("DIRTY-05: views under no_grad may be marked", _accepting(_LEAF, which=_a_view)),
    fault("DIRTY-06", around_apply(_spares_the_base), neighbours=("DIRTY-05", "DIRTY-07")),
    fault("DIRTY-06: the base gets no gradient where the view does not reach", around_apply(_forgets_the_rest)),
    fault("DIRTY-07", _accepting("modifies inplace an input that is a view")),
    fault("DIRTY-08", _accepting("were not returned as output")),
    fault("DIRTY-09", around_apply(plants.under(plants.silence))),
    fault("DIRTY-10", plants.after_forward(_marks_by_itself), neighbours=("DIRTY-02",)),
    fault("DIRTY-11", around_apply(_stays_out), neighbours=("DIRTY-01", "DIRTY-14")),
    fault("DIRTY-12", with_outputs(_the_leaf_itself)),
    fault("DIRTY-14", plants.after_forward(_differentiable_after_all)),
    fault("DIRTY-15", around_apply(_saving_is_a_change)),
    fault("DIRTY-17", _hooks_move),
    fault("DIRTY-17: later hooks join the old grad_fn", _hooks_join_the_old_node),
)

FIXES = (
    Fix("DIRTY-06", around_apply(_puts_views_first), variant="behind-others"),
    Fix("DIRTY-13"),
    Fix("DIRTY-16", _counts_references),
)
