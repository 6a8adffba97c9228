"""Faults of hooks on saved tensors."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch.autograd import graph
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import OffloadWrapper

from autograd_conformance.selftests.faults import plants
from autograd_conformance.selftests.faults.clauses.definitions import Fix
from autograd_conformance.selftests.faults.clauses.saving import own_detached, reading
from autograd_conformance.selftests.faults.planting import fault

Hook = Callable[[Any], Any]


def _hooks(change):
    """``saved_tensors_hooks(pack, unpack)`` is ``saved_tensors_hooks(*change(pack, unpack))``."""
    return plants.wrapped(graph, "saved_tensors_hooks", lambda original, *pair: original(*change(*pair)))


def _packs_once(pack, unpack):
    known = {}

    def once(tensor):
        if id(tensor) not in known:
            known[id(tensor)] = (tensor, pack(tensor))
        return known[id(tensor)][1]

    return once, unpack


def _unpacks_once(pack, unpack):
    def once(box):
        if len(box) == 1:
            box.append(unpack(box[0]))
        return box[1]

    return lambda tensor: [pack(tensor)], once


def _takes_tensors_alone(pack, unpack):
    def checked(tensor):
        packed = pack(tensor)
        if not isinstance(packed, torch.Tensor):
            raise TypeError("pack hooks must return a Tensor")
        return packed

    return checked, unpack


def _checks_versions(pack, unpack):
    def checked(box):
        tensor, version, packed = box
        if tensor._version != version:
            raise RuntimeError("a saved tensor was changed in place")
        return unpack(packed)

    return lambda tensor: (tensor.detach(), tensor._version, pack(tensor)), checked


def _one_after_the_other():
    outer = []

    @contextmanager
    def hooks(original, pack, unpack):
        before, after = outer[-1] if outer else (lambda t: t, lambda t: t)
        outer.append((lambda t: pack(before(t)), lambda t: after(unpack(t))))
        try:
            with original(*outer[-1]):
                yield
        finally:
            outer.pop()

    return plants.wrapped(graph, "saved_tensors_hooks", hooks)()


class _Kept(NamedTuple):
    """A tensor that is kept as it is."""

    tensor: Any


def _leaves_out(which):
    """Some tensors are not packed."""
    return _hooks(
        lambda pack, unpack: (
            lambda t: _Kept(t) if which(t) else pack(t),
            lambda packed: packed.tensor if isinstance(packed, _Kept) else unpack(packed),
        )
    )


def _clones_once():
    clones = {}
    return graph.saved_tensors_hooks(lambda t: clones.setdefault(t.data_ptr(), t.detach().clone()), lambda t: t)


@plants.anew
def _packs_also(which):
    """The last pack hook is called with ``which(what was saved, output)`` after each call, too."""
    packs, saved = list[Hook](), list[Any]()

    def noting(pack, unpack):
        packs.append(pack)
        return pack, unpack

    def save(original, ctx, *tensors):
        saved.extend(tensors)
        original(ctx, *tensors)

    def apply(original, cls, *args):
        found = original(cls, *args)
        for tensor in which(saved, found) if packs else ():
            packs[-1](tensor)
        saved.clear()
        return found

    return plants.all_of(_hooks(noting), plants.ctx_method("save_for_backward", save), plants.around_apply(apply))


def _attributes(_, found):
    node = getattr(found, "grad_fn", None)
    return [] if node is None else plants.tensors_of(tuple(vars(node).values()))


class _Replaceable:
    """A saved tensor on which a second pair of hooks replaces the first."""

    def __init__(self, saved):
        self.saved = saved
        self.pair = None

    def register_hooks(self, pack, unpack):
        first, self.pair = self.pair is None, unpack
        if first:
            self.saved.register_hooks(pack, lambda packed: self.pair(packed))


class _Lazy:
    """A saved tensor that is packed when it is unpacked."""

    def __init__(self, saved):
        self.saved = saved

    def register_hooks(self, pack, unpack):
        self.saved.register_hooks(lambda t: t, lambda t: unpack(pack(t)))


def _listed(kind):
    def listed(ctx, saved):
        if "listed" not in vars(ctx):
            ctx.listed = tuple(kind(each) for each in saved)
        return ctx.listed

    return plants.ctx_attribute("_raw_saved_tensors", listed)


def _graph(name, value):
    return plants.put(graph, name, value)


def _keeps_what_is_packed():
    kept = []

    def keeping(pack, unpack):
        def packed(tensor):
            kept.append(pack(tensor))
            return kept[-1]

        return packed, unpack

    return _hooks(keeping)()


def _keeps_what_it_got(pack, unpack):
    return lambda tensor: (pack(tensor), tensor), lambda pair: unpack(pair[0])


FAULTS = (
    fault("PACK-01", _hooks(_packs_once), neighbours=plants.numbers("PACK", 2, 6, 12)),
    fault("PACK-01: what was unpacked is kept for later reads", _hooks(_unpacks_once)),
    fault(
        "PACK-01: empty tensors are not packed",
        _leaves_out(lambda t: not t.numel()),
        neighbours=plants.numbers("PACK", 2, 5, 6),
    ),
    fault(
        "PACK-01: integers are not packed",
        _leaves_out(lambda t: not t.is_floating_point()),
        neighbours=plants.numbers("PACK", 2, 5, 6),
    ),
    fault("PACK-02", _hooks(lambda pack, unpack: (lambda t: pack(t.detach()), unpack))),
    fault(
        "PACK-02: pack hooks run with grad mode on",
        _hooks(lambda pack, unpack: (torch.enable_grad()(pack), unpack)),
        neighbours=("PACK-03",),
    ),
    fault("PACK-03", plants.ctx_attribute("saved_tensors", lambda _, saved: plants.detached(saved))),
    fault(
        "PACK-03: pack hooks that return no tensor raise",
        _hooks(_takes_tensors_alone),
        neighbours=("PACK-01", "PACK-12"),
    ),
    fault("PACK-03: unpacked outputs are detached", reading(own_detached)),
    fault("PACK-04", _one_after_the_other),
    fault("PACK-05", _hooks(lambda pack, unpack: (lambda t: pack(t.clone()), unpack)), neighbours=("PACK-02",)),
    fault(
        "PACK-05: what unpack hooks return is made a tensor",
        _hooks(lambda pack, unpack: (pack, lambda packed: torch.as_tensor(unpack(packed)))),
    ),
    fault("PACK-06", _packs_also(lambda saved, y: [] if y.requires_grad else saved), neighbours=("PACK-10",)),
    fault("PACK-06: tensors that are attributes of ctx are packed too", _packs_also(_attributes)),
    fault(
        "PACK-08: allow_mutation_on_saved_tensors gives changed tensors back",
        _graph("allow_mutation_on_saved_tensors", lambda: graph.saved_tensors_hooks(lambda t: t, lambda t: t)),
        neighbours=("PACK-04", "PACK-10"),
    ),
    fault(
        "PACK-08: a later call gets back what an earlier one saved",
        _graph("allow_mutation_on_saved_tensors", _clones_once),
        neighbours=("PACK-04", "PACK-10"),
    ),
    fault("PACK-09", _listed(_Replaceable)),
    fault("PACK-09: register_hooks packs when the tensor is needed", _listed(_Lazy)),
    fault(
        "PACK-11",
        plants.put(OffloadWrapper, "forward", lambda wrapper, *args: wrapper._checkpoint_wrapped_module(*args)),
        "memory of the intermediate",
    ),
    fault(
        "PACK-09: a saved tensor that was released takes hooks",
        plants.wrapped(
            torch._C._autograd.SavedTensor, "register_hooks", plants.rescued(lambda *_: None, says="has been freed")
        ),
    ),
    fault("PACK-12", _keeps_what_is_packed, "files", neighbours=("PACK-13",)),
    fault("PACK-13", _hooks(_keeps_what_it_got), neighbours=("PACK-12",)),
    fault("PACK-13: what hooks return is kept", _keeps_what_is_packed, neighbours=("PACK-12",)),
)

FIXES = (Fix("PACK-07", _hooks(_checks_versions)),)
