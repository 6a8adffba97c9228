"""What the arguments of a call share: the same tensor given twice, and objects that hold tensors given beside them."""

from __future__ import annotations

import copy
import functools
import gc
import types
from collections.abc import Mapping, Sequence
from typing import Any

from autograd_conformance.implementations.protocol import Implementation

Memo = dict[int, Any]


class Opaque:
    """A tensor that is passed as it is, like any object: of a subclass, or sparse. ``kind`` says which."""

    def __init__(self, tensor: Any, kind: str) -> None:
        self.tensor, self.kind = tensor, kind


# So many objects are looked through for tensors.
_MOST = 20_000


class Links:
    """Gives other tensors the places that the tensors of a call have: in its arguments, and in its objects.

    A tensor that is passed twice is passed twice again, and a module gets those of its parameters that are arguments.
    Instead of the tensors of the ``consumed`` slots, which a call leaves without memory, copies are passed. Those of
    the ``steady`` slots require grad whatever is asked for: some pass those parameters of a module that do.
    """

    def __init__(
        self, args: Sequence[Any], implementation: Implementation, consumed: Sequence[int] = (),
        steady: Sequence[int] = (),
    ) -> None:  # fmt: skip
        self.args, self._consumed, self._steady, self._copy = args, consumed, steady, implementation.xp.copy
        first: dict[int, int] = {}
        slots = [slot for slot, x in enumerate(args) if implementation.is_tensor(x)]
        # The slots of tensors that an earlier slot has, too.
        self.same = {slot: n for slot in slots if (n := first.setdefault(id(args[slot]), slot)) != slot}
        self._first = sorted(first.values())
        objects = [slot for slot in range(len(args)) if slot not in slots]
        held = {slot: _held(args[slot], first) for slot in objects}
        self._holders = [slot for slot, found in held.items() if found]
        # The slots of the tensors that objects hold, and the objects of which copies would have others.
        self.held = tuple(sorted(set().union(*held.values())))
        self.beyond_copies = [slot for slot in objects if _reached(args[slot], first) - held[slot]]

    def __call__(self, given: Sequence[Any]) -> list[Any]:
        """What the Function gets for these arguments."""
        found = list(given)
        for slot in self._consumed:
            found[slot] = self._copy(found[slot])
        for slot in self._steady:
            if not found[slot].requires_grad:
                found[slot] = found[slot].detach().requires_grad_()
        for slot, earlier in self.same.items():
            found[slot] = found[earlier]
        # What several objects share, their copies share.
        memo = {id(self.args[slot]): found[slot] for slot in self._first} if self._holders else {}
        for slot in self._holders:
            found[slot] = copied(self.args[slot], memo)
        return [each.tensor if isinstance(each, Opaque) else each for each in found]


def _held(value: Any, slots: Mapping[int, int]) -> set[int]:
    """The slots of the tensors that an object holds; ``slots`` has them by identity."""
    memo: Memo = {}
    try:
        copied(value, memo)
    except Exception:  # noqa: BLE001 - an object may refuse to be copied in any way
        return set()
    return {slots[key] for key in slots.keys() & memo.keys()}


def _reached(value: Any, slots: Mapping[int, int]) -> set[int]:
    """The slots of the tensors that an object holds, or that a function has from its module."""
    found, seen, left = set[int](), set[int](), [value]
    while left and len(seen) < _MOST:
        each = left.pop()
        if id(each) in slots:
            found.add(slots[id(each)])
        elif id(each) not in seen and not isinstance(each, type | types.ModuleType):
            seen.add(id(each))
            left += _parts(each)
    return found


def _parts(value: Any) -> list[Any]:
    if not isinstance(value, types.FunctionType):
        return gc.get_referents(value)
    names = value.__globals__.keys() & set(value.__code__.co_names)
    cells = [cell.cell_contents for cell in value.__closure__ or () if cell != types.CellType()]
    return [*cells, value.__defaults__, value.__kwdefaults__, *(value.__globals__[name] for name in names)]


def copied(value: Any, memo: Memo) -> Any:
    """A deep copy, also of what a function has from around it, or is bound to."""
    if isinstance(value, types.MethodType):
        return types.MethodType(value.__func__, copied(value.__self__, memo))
    if isinstance(value, functools.partial):
        args, named = (copied(each, memo) for each in (value.args, value.keywords))
        return functools.partial(copied(value.func, memo), *args, **named)
    if not isinstance(value, types.FunctionType) or not (
        value.__closure__ or value.__defaults__ or value.__kwdefaults__
    ):
        return copy.deepcopy(value, memo)
    if id(value) not in memo:
        given = value.__closure__ or ()
        cells = tuple(types.CellType() for _ in given)
        found = types.FunctionType(value.__code__, value.__globals__, value.__name__, None, cells or None)
        memo[id(value)] = found
        found.__defaults__, found.__kwdefaults__ = (copied(x, memo) for x in (value.__defaults__, value.__kwdefaults__))
        for cell, own in zip(given, cells, strict=True):
            # A name may have no value yet.
            if cell != types.CellType():
                own.cell_contents = copied(cell.cell_contents, memo)
    return memo[id(value)]


def fresh(value: Any) -> Any:
    """A copy, so that what a call changes is not changed for others; the object itself if it cannot be copied."""
    try:
        return copied(value, {})
    except Exception:  # noqa: BLE001 - an object may refuse to be copied in any way
        return value
