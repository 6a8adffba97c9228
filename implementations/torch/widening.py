"""Numbers that objects hold, turned into double precision in place: for a process that has the objects to itself."""

from __future__ import annotations

import functools
import types
from collections.abc import Iterable
from typing import Any

import torch

# How deep it is looked into objects.
_DEEPEST = 6
_WIDE = dict.fromkeys((torch.float32, torch.float16, torch.bfloat16), torch.float64) | {
    torch.complex64: torch.complex128
}


def widened(value: Any) -> Any:
    """The value with every number that it holds in double precision.

    Tensors within objects, modules, lists, dictionaries and closures are replaced there.
    """
    return _Widening().of(value, _DEEPEST)


class _Widening:
    def __init__(self) -> None:
        # By identity; the objects are kept, so that no number is used twice.
        self._seen: dict[int, tuple[Any, Any]] = {}

    def of(self, value: Any, depth: int) -> Any:
        """The value in double precision."""
        if id(value) not in self._seen:
            # What holds itself is left as it is.
            self._seen[id(value)] = value, value
            self._seen[id(value)] = value, self._turned(value, depth)
        return self._seen[id(value)][1]

    def _turned(self, value: Any, depth: int) -> Any:
        if isinstance(value, torch.Tensor):
            return self._tensor(value)
        if depth == 0 or isinstance(value, type):
            return value
        if isinstance(value, tuple | frozenset) and type(value) in (tuple, frozenset):
            return type(value)([self.of(x, depth - 1) for x in value])
        if isinstance(value, types.MethodType):
            self.of(value.__self__, depth)
        elif isinstance(value, functools.partial):
            return functools.partial(self.of(value.func, depth - 1), *self.of(value.args, depth), **value.keywords)
        elif isinstance(value, list):
            value[:] = [self.of(x, depth - 1) for x in value]
        elif isinstance(value, dict):
            self._replace(value, value.keys(), depth)
        elif callable(value) and getattr(value, "__closure__", None):
            for cell in value.__closure__:
                # A name may have no value yet.
                if cell != types.CellType():
                    cell.cell_contents = self.of(cell.cell_contents, depth - 1)
        elif hasattr(value, "__dict__"):
            self._replace(vars(value), vars(value).keys(), depth)
        return value

    def _replace(self, held: dict[Any, Any], names: Iterable[Any], depth: int) -> None:
        for name in list(names):
            held[name] = self.of(held[name], depth - 1)

    def _tensor(self, tensor: torch.Tensor) -> torch.Tensor:
        wide = _WIDE.get(tensor.dtype)
        # What another class makes of its numbers is its own.
        if wide is None or type(tensor) not in (torch.Tensor, torch.nn.Parameter):
            return tensor
        if tensor.layout != torch.strided:
            return tensor.detach().to(wide)
        if tensor.is_leaf:
            # Whoever else holds it has the same one.
            tensor.data = tensor.data.to(wide)
            tensor.grad = None
            return tensor
        return tensor.detach().to(wide).requires_grad_(tensor.requires_grad)
