"""What a recorder writes of the arguments of a call."""

from __future__ import annotations

import enum
import functools
import inspect
import math
import os
import re
import sys
from collections import OrderedDict
from collections.abc import KeysView, ValuesView
from typing import Any

# The package that defines custom Functions.
PACKAGE = "torch"
_PLAIN = (bool, int, float, complex, str, type(None))
# Words are choices of a Function; a longer text may be anything, as may a long list.
_WORD = r"[A-Za-z_][\w-]{0,19}"
_LONGEST_LIST = 16
_LONGEST_KEY = 40
# The rows of matrices that are looked at.
_LARGEST_MATRIX = 128
# The words that make an object again: how deep it may be, and how many letters they may have.
_DEEPEST, _LONGEST_WORDS = 5, 1000


def is_tensor(value: Any) -> bool:
    return isinstance(value, sys.modules[PACKAGE].Tensor)


def _is_plain(tensor: Any) -> bool:
    """Whether it is no tensor of a class of the program's own, nor one of tracers."""
    torch = sys.modules[PACKAGE]
    return type(tensor) in (torch.Tensor, torch.nn.Parameter)


def key_of(value: Any) -> Any:
    """What tells kinds of arguments apart."""
    if type(value) in _PLAIN:
        return type(value), value
    if is_tensor(value):
        return type(value), value.shape, value.dtype, value.requires_grad, value.device.type, _layout(value)
    if isinstance(value, tuple | list):
        return type(value), *(map(key_of, value) if len(value) <= _LONGEST_LIST else [len(value)])
    if type(value).__module__ == PACKAGE:
        return type(value), str(value)
    return type(value), getattr(value, "__qualname__", id(value)) if callable(value) else None


def _layout(tensor: Any) -> str:
    if tensor.layout is not sys.modules[PACKAGE].strided:
        return str(tensor.layout).rpartition(".")[2]
    if tensor.is_contiguous():
        return "contiguous"
    return "expanded" if 0 in tensor.stride() else "strided"


def described(value: Any) -> dict[str, Any]:
    """An argument as data."""
    if is_tensor(value):
        special = {} if _is_plain(value) else {"class": f"{type(value).__module__}.{type(value).__qualname__}"}
        return {
            "tensor": str(value.dtype).rpartition(".")[2],
            "shape": list(value.shape),
            "grad": value.requires_grad,
            "layout": _layout(value),
            "device": value.device.type,
            **special,
        }
    if isinstance(value, float) and value - value != 0:
        return {"object": "number that is not finite", "expression": f'float("{value}")'}
    if isinstance(value, str) and not re.fullmatch(_WORD, value):
        return {"object": "text that is no single word"}
    if type(value) in _PLAIN and not isinstance(value, complex):
        return {"value": value}
    if isinstance(value, tuple | list) and len(value) > _LONGEST_LIST:
        return {"object": f"{type(value).__name__} of {len(value)} items"}
    if type(value) in (tuple, list):
        return {type(value).__name__: list(map(described, value)), **named(value)}
    return {"object": f"{type(value).__module__}.{type(value).__qualname__}", **named(value)}


def named(value: Any) -> dict[str, Any]:
    """The words that make this object again, what they import, and whether they make it; empty if there are none."""
    words = _Words()
    try:
        text = words.of(value)
    except Exception:  # noqa: BLE001 - attributes of a program's objects may raise anything
        return {}
    if len(text) > _LONGEST_WORDS:
        return {}
    return {"expression": text, "imports": sorted(words.imports), "made": words.made}


class _Words:
    """The words that make an object again, with what they import."""

    def __init__(self) -> None:
        # Each a module, a name that it has, or none, and its file.
        self.imports: set[tuple[str, str, str]] = set()
        # Whether an object is made, which each call then needs anew.
        self.made = False
        self.depth = 0

    def of(self, value: Any) -> str:
        """The words. Raises an error if nothing says how to make it."""
        self.depth += 1
        try:
            if self.depth > _DEEPEST:
                raise ValueError("it holds too much")
            return self._plain(value) or self._global(value) or self._of_torch(value) or self._made(value)
        finally:
            self.depth -= 1

    def _plain(self, value: Any) -> str:
        """A number, a word, None, or a tuple, list or dictionary."""
        if isinstance(value, KeysView | ValuesView):
            return self.of(tuple(value))
        if type(value) in (tuple, list, dict, OrderedDict) and len(value) > _LONGEST_LIST:
            raise ValueError("it holds too many")
        if type(value) in (dict, OrderedDict):
            self.made = True
            return f"{{{', '.join(f'{self._key(key)}: {self.of(each)}' for key, each in value.items())}}}"
        if type(value) is list:
            return f"[{', '.join(map(self.of, value))}]"
        if type(value) is tuple:
            return f"({', '.join(map(self.of, value))}{',' * (len(value) == 1)})"
        if value is ...:
            return "..."
        if type(value) is slice:
            return f"slice({self.of(value.start)}, {self.of(value.stop)}, {self.of(value.step)})"
        if type(value) not in _PLAIN:
            return ""
        if isinstance(value, str) and not re.fullmatch(_WORD, value):
            raise ValueError("it holds a text")
        return f'float("{value}")' if isinstance(value, float) and value - value != 0 else repr(value)

    def _key(self, key: Any) -> str:
        """A key of a dictionary; those of options are names, which may be long."""
        return repr(key) if isinstance(key, str) and key.isidentifier() and len(key) < _LONGEST_KEY else self.of(key)

    def _global(self, value: Any) -> str:
        """A function or class that a module has."""
        torch = sys.modules[PACKAGE]
        module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", "")
        short = str(getattr(value, "__name__", ""))
        if short and getattr(torch, short, None) is value:
            self.imports.add((PACKAGE, "", ""))
            return f"{PACKAGE}.{short}"
        if not isinstance(module, str) or not name.isidentifier():
            return ""
        if getattr(sys.modules.get(module), name, None) is not value:
            # What makes a class may leave its own name in it: another module of the package has it.
            package = module.partition(".")[0]
            inside = [place for place in sys.modules if place.partition(".")[0] == package]
            module = next((place for place in inside if vars(sys.modules[place]).get(name) is value), "")
        if not module:
            return ""
        if module != "builtins":
            spec, file = getattr(sys.modules[module], "__spec__", None), getattr(sys.modules[module], "__file__", None)
            stem = os.path.splitext(os.path.basename(str(file)))[0]
            place = getattr(spec, "name", None) or stem if module == "__main__" else module
            self.imports.add((place, name, str(file or "")))
        return str(name)

    def _of_torch(self, value: Any) -> str:
        """A dtype, a device, a tensor or a layer."""
        kind = type(value)
        known = kind.__module__ == PACKAGE and kind.__name__ in ("dtype", "layout", "memory_format", "device", "Size")
        layer = kind.__module__.startswith("torch.nn.modules.")
        if not known and not layer and not is_tensor(value):
            return ""
        self.imports.add((PACKAGE, "", ""))
        if known:
            return f"torch.{value!r}" if kind.__name__ == "device" else repr(value)
        self.made = True
        if is_tensor(value):
            return _filled(value)
        if kind.__name__ == "Sequential":
            return f"torch.nn.Sequential({', '.join(map(self.of, value))})"
        if list(value.children()):
            raise ValueError("it is a layer of layers")
        return f"torch.nn.{value!r}"

    def _made(self, value: Any) -> str:
        """A bound method, a partial, a member of an enumeration, or an object by its attributes."""
        owner, function = getattr(value, "__self__", None), getattr(value, "__func__", None)
        if owner is not None and function is not None:
            return f"{self.of(owner)}.{function.__name__}"
        if isinstance(value, functools.partial):
            self.imports.add(("functools", "partial", ""))
            self.made = True
            given = [*map(self.of, value.args), *(f"{name}={self.of(x)}" for name, x in value.keywords.items())]
            return f"partial({', '.join([self.of(value.func), *given])})"
        cls = self._global(type(value))
        if not cls or cls == "object":
            raise ValueError("its class is no global name")
        if isinstance(value, enum.Enum):
            return f"{cls}.{value.name}"
        self.made = True
        imports = set(self.imports)
        try:
            return f"{cls}({self._given(value, _parameters(value))})"
        except (AttributeError, TypeError, ValueError):
            self.imports = {*imports, ("autograd_conformance", "restored", "")}
            return f"restored({', '.join(filter(None, [cls, self._given(value, _attributes(value))]))})"

    def _given(self, value: Any, names: list[str]) -> str:
        return ", ".join(f"{name}={self.of(getattr(value, name))}" for name in names)


def _parameters(value: Any) -> list[str]:
    """The parameters of an object's class. One with a default that the object has no attribute for is left out."""
    parameters = inspect.signature(type(value)).parameters.values()
    named = [p for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    return [p.name for p in named if p.default is p.empty or hasattr(value, p.name)]


def _attributes(value: Any) -> list[str]:
    """The attributes of an object that is nothing else than these. Raises an error for others."""
    cls: Any = type(value)
    if cls.__new__ is not object.__new__:
        raise ValueError("it has more than attributes")
    layer = sys.modules[PACKAGE].nn.Module
    if not isinstance(value, layer):
        return list(vars(value))
    registered = [*value._modules, *value._parameters, *value._buffers]
    return [*registered, *(name for name in vars(value) if name not in vars(layer()))]


def _filled(tensor: Any) -> str:
    """The words for a tensor of this shape and dtype, with other numbers. A single one is kept, as a number is."""
    torch = sys.modules[PACKAGE]
    kind = type(tensor)
    if kind is torch.nn.Parameter:
        return f"torch.nn.Parameter({_filled(tensor.data)})"
    if kind is not torch.Tensor or tensor.layout not in (torch.strided, torch.sparse_coo):
        raise ValueError("it is a tensor of a special kind")
    shape = tuple(tensor.shape)
    if tensor.layout is torch.sparse_coo:
        return f"torch.randn({shape}, dtype={tensor.dtype}).to_sparse()"
    if not shape:
        return f"torch.tensor({tensor.item()!r}, dtype={tensor.dtype})"
    if tensor.dtype is torch.bool:
        return f"torch.rand({shape}) < 0.5"
    if tensor.is_floating_point() or tensor.is_complex():
        return f"torch.randn({shape}, dtype={tensor.dtype})"
    least, most = _ends(tensor) if tensor.numel() else (0, 0)
    return f"torch.randint({least}, {most + 1}, {shape}, dtype={tensor.dtype})"


def value_range(tensor: Any) -> dict[str, Any]:
    """The least and the largest value; of integers also what is apart, of floating ones whether they are special."""
    torch = sys.modules[PACKAGE]
    try:
        # A look at tensors of tracers ends the capture of a graph.
        if not _is_plain(tensor):
            return {}
        if tensor.is_cuda and torch.cuda.is_current_stream_capturing():
            return {}
        if not tensor.numel() or tensor.is_complex() or tensor.layout is not torch.strided:
            return {}
        with torch.no_grad():
            if not tensor.is_floating_point():
                return _whole(tensor)
            least, most = tensor.detach().aminmax()
            least, most = least.item(), most.item()
            # One number says nothing about others.
            several = tensor.numel() > 1
            binary = several and least >= 0 and most <= 1 and bool(((tensor == 0) | (tensor == 1)).all())
            matrices = _matrices(tensor) if least < most else []
        ends = {"least": least, "most": most} if most - least < math.inf else {}
        return {**ends, "ranges": ["binary"] * binary + matrices}
    except Exception:  # noqa: BLE001 - tensors of transforms and tracers have no values to look at
        return {}


def _whole(integers: Any) -> dict[str, Any]:
    """The least and the largest of integers, without what is ``apart``: the only one below 0, or far above the rest."""
    least, most = _ends(integers)
    if least == most or integers.dtype is sys.modules[PACKAGE].bool:
        return {"least": least, "most": most}
    negative, others = integers[integers < 0], integers[integers >= 0]
    if negative.numel() and others.numel() and bool((negative == least).all()):
        return {**dict(zip(("least", "most"), _ends(others), strict=True)), "apart": least}
    return {"least": least, "most": most, "below": int(integers[integers != most].max())}


def _matrices(tensor: Any) -> list[str]:
    """What square matrices are, of two rows at least."""
    torch, side = sys.modules[PACKAGE], tensor.shape[-1] if tensor.ndim > 1 else 0
    if not 2 <= side <= _LARGEST_MATRIX or tensor.shape[-2] != side:
        return []
    wide = tensor.detach().double()
    found = {"lower": torch.equal(wide, wide.tril()), "upper": torch.equal(wide, wide.triu())}
    found["symmetric"] = torch.allclose(wide, wide.mT, rtol=1e-4, atol=1e-6 * wide.abs().max().item())
    found["definite"] = found["symmetric"] and not torch.linalg.cholesky_ex(wide).info.any()
    return [name for name, holds in found.items() if holds]


def _ends(integers: Any) -> tuple[int, int]:
    """The least and the largest; of a single number, which is the user's data, a rounder one farther from 0."""
    least, most = map(int, integers.aminmax())
    alone = integers.numel() == 1
    return _outwards(least, alone), _outwards(most, alone)


def _outwards(number: int, rounded: bool) -> int:
    """The number, or a rounder one that is at least as far from 0."""
    if not rounded:
        return number
    return -(1 << (-number - 1).bit_length()) if number < 0 else (1 << number.bit_length()) - 1
