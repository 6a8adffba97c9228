"""Faults of hooks on saved tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch
from torch.autograd import graph

from autograd_conformance.selftests.planted_clauses.definitions import Fix
from autograd_conformance.selftests.planted_clauses.intercept import (
    around_apply,
    ctx_attribute,
    ctx_method,
    replaced,
)
from autograd_conformance.selftests.planting import Fault

Hook = Callable[[Any], Any]


def _hooks(change: Callable[[Hook, Hook], tuple[Hook, Hook]]) -> AbstractContextManager[Any]:
    """``saved_tensors_hooks(pack, unpack)`` is ``saved_tensors_hooks(*change(pack, unpack))``."""
    return replaced(graph, "saved_tensors_hooks", lambda original: lambda pack, unpack: original(*change(pack, unpack)))


def _packs_once(pack: Hook, unpack: Hook) -> tuple[Hook, Hook]:
    known: dict[int, Any] = {}

    def once(tensor: Any) -> Any:
        if id(tensor) not in known:
            known[id(tensor)] = (tensor, pack(tensor))
        return known[id(tensor)][1]

    return once, unpack


def _unpacks_once(pack: Hook, unpack: Hook) -> tuple[Hook, Hook]:
    def once(box: list[Any]) -> Any:
        if len(box) == 1:
            box.append(unpack(box[0]))
        return box[1]

    return lambda tensor: [pack(tensor)], once


def _packs_with_grad_mode(pack: Hook, unpack: Hook) -> tuple[Hook, Hook]:
    return torch.enable_grad()(pack), unpack


def _takes_tensors_alone(pack: Hook, unpack: Hook) -> tuple[Hook, Hook]:
    def checked(tensor: Any) -> Any:
        packed = pack(tensor)
        if not isinstance(packed, torch.Tensor):
            raise TypeError("pack hooks must return a Tensor")
        return packed

    return checked, unpack


def _converts(pack: Hook, unpack: Hook) -> tuple[Hook, Hook]:
    return pack, lambda packed: torch.as_tensor(unpack(packed))


def _checks_versions(pack: Hook, unpack: Hook) -> tuple[Hook, Hook]:
    def checked(box: Any) -> Any:
        tensor, version, packed = box
        if tensor._version != version:
            raise RuntimeError("a saved tensor was changed in place")
        return unpack(packed)

    return lambda tensor: (tensor.detach(), tensor._version, pack(tensor)), checked


@contextmanager
def _one_after_the_other() -> Iterator[None]:
    outer: list[tuple[Hook, Hook]] = []

    def composed(original: Any) -> Any:
        @contextmanager
        def hooks(pack: Hook, unpack: Hook) -> Iterator[None]:
            before, after = outer[-1] if outer else (lambda t: t, lambda t: t)
            outer.append((lambda t: pack(before(t)), lambda t: after(unpack(t))))
            try:
                with original(*outer[-1]):
                    yield
            finally:
                outer.pop()

        return hooks

    with replaced(graph, "saved_tensors_hooks", composed):
        yield


class _Kept:
    """A tensor that is kept as it is."""

    def __init__(self, tensor: Any) -> None:
        self.tensor = tensor


def _leaves_out(which: Callable[[Any], bool]) -> AbstractContextManager[Any]:
    """Some tensors are not packed."""

    def change(pack: Hook, unpack: Hook) -> tuple[Hook, Hook]:
        return (
            lambda t: _Kept(t) if which(t) else pack(t),
            lambda packed: packed.tensor if isinstance(packed, _Kept) else unpack(packed),
        )

    return _hooks(change)


def _enables_afterwards(_: Any) -> Any:
    @contextmanager
    def disable(message: str) -> Iterator[None]:
        torch._C._autograd._saved_tensors_hooks_disable(message)
        try:
            yield
        finally:
            torch._C._autograd._saved_tensors_hooks_enable()

    return disable


def _clones_once(_: Any) -> Any:
    @contextmanager
    def allow() -> Iterator[None]:
        clones: dict[int, Any] = {}
        with graph.saved_tensors_hooks(lambda t: clones.setdefault(t.data_ptr(), t.detach().clone()), lambda t: t):
            yield

    return allow


def _nowhere(_: Any) -> Any:
    return lambda message: nullcontext(message)


@contextmanager
def _packs_what_is_not_recorded() -> Iterator[None]:
    packs: list[Hook] = []
    saved: list[Any] = []

    def noting(pack: Hook, unpack: Hook) -> tuple[Hook, Hook]:
        packs.append(pack)
        return pack, unpack

    def save(original: Any, ctx: Any, *tensors: Any) -> None:
        saved.extend(tensors)
        original(ctx, *tensors)

    def apply(original: Any, cls: Any, *args: Any) -> Any:
        saved.clear()
        result = original(cls, *args)
        if packs and isinstance(result, torch.Tensor) and not result.requires_grad:
            [packs[-1](tensor) for tensor in saved]
        return result

    with _hooks(noting), ctx_method("save_for_backward", save), around_apply(apply):
        yield


@contextmanager
def _packs_attributes() -> Iterator[None]:
    packs: list[Hook] = []

    def noting(pack: Hook, unpack: Hook) -> tuple[Hook, Hook]:
        packs.append(pack)
        return pack, unpack

    def apply(original: Any, cls: Any, *args: Any) -> Any:
        result = original(cls, *args)
        held = vars(getattr(result, "grad_fn", None) or cls)
        [packs[-1](value) for value in held.values() if packs and isinstance(value, torch.Tensor)]
        return result

    with _hooks(noting), around_apply(apply):
        yield


def _in_half_precision(_: Any) -> Any:
    return lambda **_: graph.saved_tensors_hooks(lambda t: t.half(), lambda t: t)


def _clones_nothing(_: Any) -> Any:
    return lambda: graph.saved_tensors_hooks(lambda t: t, lambda t: t)


class _Replaceable:
    """A saved tensor on which a second pair of hooks replaces the first."""

    def __init__(self, saved: Any) -> None:
        self.saved = saved
        self.pair: Any = None

    def register_hooks(self, pack: Hook, unpack: Hook) -> None:
        first, self.pair = self.pair is None, unpack
        if first:
            self.saved.register_hooks(pack, lambda packed: self.pair(packed))


class _Lazy:
    """A saved tensor that is packed when it is unpacked."""

    def __init__(self, saved: Any) -> None:
        self.saved = saved

    def register_hooks(self, pack: Hook, unpack: Hook) -> None:
        self.saved.register_hooks(lambda t: t, lambda t: unpack(pack(t)))


def _listed(kind: Any) -> AbstractContextManager[Any]:
    def listed(ctx: Any, saved: Any) -> Any:
        if "listed" not in vars(ctx):
            ctx.listed = tuple(kind(each) for each in saved)
        return ctx.listed

    return ctx_attribute("_raw_saved_tensors", listed)


FAULTS = (
    Fault("PACK-01", lambda: _hooks(_packs_once), neighbours=("PACK-02", "PACK-06")),
    Fault("PACK-01", lambda: _hooks(_unpacks_once), words="what was unpacked is kept for later reads"),
    Fault(
        "PACK-01",
        lambda: _leaves_out(lambda t: not t.numel()),
        neighbours=("PACK-02", "PACK-05", "PACK-06"),
        words="empty tensors are not packed",
    ),
    Fault(
        "PACK-01",
        lambda: _leaves_out(lambda t: not t.is_floating_point()),
        neighbours=("PACK-02", "PACK-05", "PACK-06"),
        words="integers are not packed",
    ),
    Fault("PACK-02", lambda: _hooks(lambda pack, unpack: (lambda t: pack(t.detach()), unpack))),
    Fault(
        "PACK-02",
        lambda: _hooks(_packs_with_grad_mode),
        neighbours=("PACK-03",),
        words="pack hooks run with grad mode on",
    ),
    Fault(
        "PACK-03",
        lambda: ctx_attribute("saved_tensors", lambda _, it: tuple(None if t is None else t.detach() for t in it)),
    ),
    Fault(
        "PACK-03",
        lambda: _hooks(_takes_tensors_alone),
        neighbours=("PACK-01",),
        words="pack hooks that return no tensor raise",
    ),
    Fault(
        "PACK-03",
        lambda: ctx_attribute(
            "saved_tensors",
            lambda ctx, it: tuple(t.detach() if t is not None and t.grad_fn is ctx else t for t in it),
        ),
        words="unpacked outputs are detached",
    ),
    Fault("PACK-04", _one_after_the_other),
    Fault(
        "PACK-04",
        lambda: replaced(graph, "disable_saved_tensors_hooks", _enables_afterwards),
        words="where hooks are disabled twice the inner end enables them",
    ),
    Fault(
        "PACK-04",
        lambda: replaced(graph, "disable_saved_tensors_hooks", _nowhere),
        words="hooks can be entered where they are disabled",
    ),
    Fault(
        "PACK-05",
        lambda: _hooks(lambda pack, unpack: (lambda t: pack(t.clone()), unpack)),
        neighbours=("PACK-02",),
    ),
    Fault("PACK-05", lambda: _hooks(_converts), words="what unpack hooks return is made a tensor"),
    Fault("PACK-06", _packs_what_is_not_recorded, neighbours=("PACK-10",)),
    Fault("PACK-06", _packs_attributes, words="tensors that are attributes of ctx are packed too"),
    Fault("PACK-08", lambda: replaced(graph, "save_on_cpu", _in_half_precision)),
    Fault(
        "PACK-08",
        lambda: replaced(graph, "allow_mutation_on_saved_tensors", _clones_nothing),
        neighbours=("PACK-04", "PACK-10"),
        words="allow_mutation_on_saved_tensors gives changed tensors back",
    ),
    Fault(
        "PACK-08",
        lambda: replaced(graph, "allow_mutation_on_saved_tensors", _clones_once),
        neighbours=("PACK-04", "PACK-10"),
        words="a later call gets back what an earlier one saved",
    ),
    Fault("PACK-09", lambda: _listed(_Replaceable)),
    Fault("PACK-09", lambda: _listed(_Lazy), words="register_hooks packs when the tensor is needed"),
)

FIXES = (Fix("PACK-07", lambda: _hooks(_checks_versions)),)
