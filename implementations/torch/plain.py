"""The values and the memory of the tensors of packages that stand for torch: through NumPy, and nothing else."""

from __future__ import annotations

from typing import Any

import numpy as np


def kind(tensor: Any) -> str:
    """The kind of a tensor whose memory is not an array with strides: there are none."""
    return ""


def read(tensor: Any) -> Any:
    """A NumPy copy of the values: float64 or complex128, or as they are."""
    array = np.asarray(tensor.detach().numpy())
    # bfloat16 is not a dtype of NumPy: its kind is V, or that of a package.
    if array.dtype.kind in "iub" and array.dtype.isbuiltin:
        return array.copy()
    return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)


def fill(tensor: Any, value: Any) -> None:
    """Overwrite a tensor in place, with a number or with an array of its shape."""
    tensor.detach().numpy()[...] = value


def shared(a: Any, b: Any) -> bool:
    """Whether an element of one tensor has a byte in common with an element of the other."""
    return bool(np.shares_memory(a.detach().numpy(), b.detach().numpy()))
