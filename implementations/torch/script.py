"""How torch writes a reproduction script: its names, and tensors as literals."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from autograd_conformance.implementations.protocol import ScriptText
from autograd_conformance.implementations.scripting import Named
from autograd_conformance.implementations.torch.demonstrations import demonstrate
from autograd_conformance.implementations.torch.series import listed

WIDTH = 116

# By its own name: another package may have been imported as torch.
PACKAGE = torch.__name__

IMPORTS = {
    "functools": "import functools",
    "gc": "import gc",
    "sys": "import sys",
    "weakref": "import weakref",
    "np": "import numpy as np",
    "torch": "import torch" if PACKAGE == "torch" else f"import {PACKAGE} as torch",
    "FakeTensorMode": f"from {PACKAGE}._subclasses.fake_tensor import FakeTensorMode",
    "fwAD": f"import {PACKAGE}.autograd.forward_ad as fwAD",
    "checkpoint": f"from {PACKAGE}.utils.checkpoint import checkpoint",
}

# The names of the array namespace that torch spells otherwise; see `TorchImplementation.xp` in torch.py.
NAMES = {
    "copy": "lambda x: x.clone()",
    "expand_dims": "lambda x, axis: torch.unsqueeze(x, axis)",
    "flip": "lambda x, axis: x.flip(axis)",
    "from_numpy": 'lambda a, like: torch.from_numpy(np.array(a, order="C")).to(like.device)',
    "matrix_transpose": "lambda x: x.mT",
    "max": "torch.amax",
    "permute_dims": "torch.permute",
    "sparse_matmul": "lambda i, v, shape, b: torch.sparse_coo_tensor(i, v, shape, check_invariants=True) @ b",
    "take": "lambda x, indices, axis: torch.index_select(x, axis, indices)",
    "take_along_axis": "lambda x, indices, axis: torch.take_along_dim(x, indices, axis)",
    "to_numpy": "lambda x: x.detach().cpu().numpy()",
}

# What torch documents for the keywords of the array namespace.
KEYWORDS = {"axis": "dim", "keepdims": "keepdim"}

AUTOGRAD = {
    "Function": "torch.autograd.Function",
    "once_differentiable": "torch.autograd.function.once_differentiable",
}

PRELUDE = {"lazy": "import torch._lazy.ts_backend\n\ntorch._lazy.ts_backend.init()\n"}


def tensor(named: Named, device: str, place: Callable[..., Any]) -> str:
    """The expression for a tensor in its layout, which ``place`` makes of a contiguous one."""

    def array(buffer: Any, kind: str) -> _Text:
        return _Text(literal(np.asarray(buffer), kind, device), np.ndim(buffer))

    made: _Text = place(_Views(), array, named.values, named.dtype, named.layout)
    if not named.track:
        return made.text
    return f"{made.text[:-1]}, requires_grad=True)" if made.plain else f"{made.text}.requires_grad_()"


def literal(array: Any, dtype: str, device: str = "cpu") -> str:
    """The expression for a contiguous tensor, exact: NaN, infinity and the sign of zero included."""
    options = f"dtype=torch.{dtype}" + ("" if device == "cpu" else f', device="{device}"')
    shape = tuple(map(int, array.shape))
    if array.size == 0:
        return f"torch.zeros({shape}, {options})"
    first = array.reshape(-1)[0]
    same = array.tobytes() == np.full(shape, first, array.dtype).tobytes()
    if array.size > 1 and same:
        return f"torch.ones({shape}, {options})" if first == 1 else f"torch.full({shape}, {number(first)}, {options})"
    text = _nested(array.tolist())
    if len(text) > WIDTH:
        text, one_by_one = listed(array, number)
        rows = f"[\n{textwrap.indent(textwrap.fill(text[1:-1], WIDTH), '    ')}\n]" if one_by_one else text
        reshaped = "" if array.ndim == 1 else f".reshape{shape}"
        row = f"torch.tensor({rows}, {options}){reshaped}"
        return row if one_by_one or len(row) <= WIDTH else f"torch.tensor(\n    {rows},\n    {options}){reshaped}"
    return f"torch.tensor({text}, {options})"


def number(value: Any) -> str:
    """An expression for a number."""
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, complex):
        return f"complex({number(value.real)}, {number(value.imag)})"
    if isinstance(value, float) and not np.isfinite(value):
        return "torch.nan" if np.isnan(value) else f"{'-' * (value < 0)}torch.inf"
    return repr(value)


def _nested(value: Any) -> str:
    return f"[{', '.join(map(_nested, value))}]" if isinstance(value, list) else number(value)


class _Text:
    """A tensor as text, in the place of one where a layout makes its view; ``plain`` as long as it is not a view."""

    def __init__(self, text: str, ndim: int, plain: bool = True) -> None:
        self.text, self.ndim = text, ndim
        self.plain = plain and text.endswith(")") and ").reshape" not in text

    def __getitem__(self, index: Any) -> _Text:
        parts = index if isinstance(index, tuple) else (index,)
        return _Text(f"{self.text}[{', '.join(map(_index, parts))}]", self.ndim, plain=False)


def _index(part: Any) -> str:
    if part is ...:
        return "..."
    bounds = [part.start, part.stop] if part.step is None else [part.start, part.stop, part.step]
    return ":".join("" if bound is None else str(bound) for bound in bounds)


class _Views:
    """The part of the array namespace that layouts use, as text."""

    @staticmethod
    def permute_dims(x: _Text, axes: tuple[int, ...]) -> _Text:
        turned = ".t()" if axes == (1, 0) else f".permute{axes}"
        return _Text(x.text + turned, x.ndim, plain=False)

    @staticmethod
    def broadcast_to(x: _Text, shape: tuple[int, ...]) -> _Text:
        return _Text(f"{x.text}.expand({', '.join(map(str, shape))})", len(shape), plain=False)

    @staticmethod
    def conj(x: _Text) -> _Text:
        return _Text(f"{x.text}.conj()", x.ndim, plain=False)

    @staticmethod
    def imag(x: _Text) -> _Text:
        return _Text(f"{x.text}.imag", x.ndim, plain=False)


SCRIPT = ScriptText(
    imports=IMPORTS,
    package="torch",
    names=NAMES,
    keywords=KEYWORDS,
    ag=AUTOGRAD,
    tensor=tensor,
    prelude=PRELUDE,
    seed="torch.manual_seed({seed})",
    demonstrate=demonstrate,
)
