"""How bodies and tests use tensors, as data: each operator, index and function of the namespace, as it is written.

The smoke stage runs each of them on an implementation and on NumPy, and compares the values.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np

# A use that is differentiated whatever is claimed. A body itself is never differentiated: it runs unrecorded.
ALWAYS = ""


@dataclass(frozen=True)
class Use:
    """One use: an expression of the tensors ``x`` and ``y``, a row ``v``, indices ``i`` and a complex ``z``.

    ``differentiated`` has the capabilities with which the suite differentiates through it: `ALWAYS`, or None for never.
    ``needs`` is the capability without which no test uses it, ``method`` the one that Python calls for an operator.
    """

    text: str
    differentiated: str | None = None
    method: str = ""
    needs: str = ""

    @property
    def name(self) -> str:
        """The name in the namespace; empty for an operator."""
        return self.text.removeprefix("xp.").partition("(")[0] if self.text.startswith("xp.") else ""

    @property
    def apply(self) -> Callable[..., Any]:
        """The use as a function of the namespace and of the tensors."""
        made: Callable[..., Any] = eval(f"lambda xp, {', '.join(self.given)}: {self.text}")
        return made

    @property
    def given(self) -> tuple[str, ...]:
        """The tensors of the expression, in order."""
        return tuple(name for name in POINTS if re.search(rf"\b{name}\b", self.text))


# Where the uses are tried: no two entries of a sum or a maximum tie, and one entry of x and y is equal.
POINTS = {
    "x": np.array([[4.0, 1.0, 0.25], [9.0, 2.25, 16.0]]),
    "y": np.array([[1.0, -2.0, 0.5], [-1.0, 3.0, 16.0]]),
    "v": np.array([2.0, 0.5, 1.0]),
    "i": np.array([2, 0]),
    "z": np.array([[1 + 2j, -3.0], [0.5j, 2 - 1j]]),
}

_TWICE = "double_backward"

OPERATORS = (
    Use("x + y", ALWAYS, "__add__"),
    Use("x * y", ALWAYS, "__mul__"),
    Use("x * 0.5", ALWAYS, "__mul__"),
    Use("-x", ALWAYS, "__neg__"),
    Use("x + v", _TWICE, "__add__"),
    Use("x + 2", _TWICE, "__add__"),
    Use("2 + x", _TWICE, "__radd__"),
    Use("x - y", _TWICE, "__sub__"),
    Use("x - 2", _TWICE, "__sub__"),
    Use("2 - x", _TWICE, "__rsub__"),
    Use("x * v", _TWICE, "__mul__"),
    Use("2.5 * x", _TWICE, "__rmul__"),
    Use("x / y", _TWICE, "__truediv__"),
    Use("x / 2", _TWICE, "__truediv__"),
    Use("2 / x", _TWICE, "__rtruediv__", "inplace"),
    Use("x ** 2", _TWICE, "__pow__"),
    Use("x @ xp.matrix_transpose(y)", _TWICE, "__matmul__"),
    Use("x[1]", f"{_TWICE} tuples", "__getitem__"),
    Use("x[:, 1:]", f"{_TWICE} tuples", "__getitem__"),
    Use("x[..., None]", f"{_TWICE} tuples", "__getitem__"),
    Use("x < 2", None, "__lt__"),
    Use("x > 2", None, "__gt__"),
    Use("x == y", None, "__eq__"),
)

FUNCTIONS = (
    Use("xp.broadcast_to(x, (2, 2, 3))", ALWAYS),
    Use("xp.copy(x)", ALWAYS),
    Use("xp.permute_dims(x, (1, 0))", ALWAYS),
    Use("xp.permute_dims(xp.broadcast_to(x, (2, 2, 3)), (1, 2, 0))", ALWAYS),
    Use("xp.reshape(x, (3, 2))", ALWAYS),
    Use("xp.reshape(x, (-1,))", ALWAYS),
    Use("xp.sum(x)", ALWAYS),
    Use("xp.sum(x, axis=0)", _TWICE),
    Use("xp.sum(x, axis=(0, 1))", _TWICE),
    Use("xp.sum(x, axis=(1,), keepdims=True)", _TWICE),
    Use("xp.concat([x, y], axis=1)", _TWICE),
    Use("xp.conj(x)", _TWICE),
    Use("xp.expand_dims(x, axis=1)", _TWICE),
    Use("xp.matmul(x, xp.matrix_transpose(y))", _TWICE),
    Use("xp.matrix_transpose(x)", _TWICE),
    Use("xp.take(x, i, axis=1)", f"{_TWICE} sparse"),
    Use("xp.where(x > 2, x, y)", _TWICE),
    Use("xp.abs(y)"),
    Use("xp.argmax(y, axis=1)"),
    Use("xp.argsort(y, axis=-1)"),
    Use("xp.conj(z)"),
    Use("xp.cos(y)"),
    Use("xp.cosh(y)"),
    Use("xp.exp(y)"),
    Use("xp.flip(x, axis=1)"),
    Use("xp.flip(x, axis=(0, 1))"),
    Use("xp.imag(z)"),
    Use("xp.max(y, axis=0)"),
    Use("xp.mean(x, axis=1)"),
    Use("xp.ones_like(x)"),
    Use("xp.real(z)"),
    Use("xp.sign(y)"),
    Use("xp.sin(y)"),
    Use("xp.sinh(y)"),
    Use("xp.sqrt(x)"),
    Use("xp.stack([x, y], axis=0)"),
    Use("xp.take_along_axis(x, xp.argsort(y, axis=-1), axis=-1)"),
    Use("xp.tanh(y)"),
    Use("xp.zeros_like(x)"),
)

USES = (*OPERATORS, *FUNCTIONS)

# The namespace for NumPy's arrays, also those of NumPy 1.
numpy_namespace: Any = SimpleNamespace(**{name: getattr(np, name) for name in dir(np) if not name.startswith("_")})
numpy_namespace.concat = np.concatenate
numpy_namespace.matrix_transpose = lambda x: np.swapaxes(x, -1, -2)
numpy_namespace.permute_dims = np.transpose
