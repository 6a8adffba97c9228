"""The values and the memory of torch's tensors, of every kind that a Function can return."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from autograd_conformance.implementations.protocol import Unreadable

# The tensor that holds the values of a sparse one. Nothing writes into the indices: torch's own operations share them.
_VALUES = {
    torch.sparse_coo: torch.Tensor._values,
    **dict.fromkeys((torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc), torch.Tensor.values),
}


def _nested(tensor: Any) -> bool:
    """Whether a tensor is nested; one that cannot say so is not."""
    return bool(getattr(tensor, "is_nested", False))


def kind(tensor: Any) -> str:
    """The kind of a tensor whose memory is not an array with strides, in words; empty for any other."""
    if _nested(tensor):
        return "nested"
    return "" if tensor.layout is torch.strided else str(tensor.layout).removeprefix("torch.").lstrip("_")


def read(tensor: Any) -> Any:
    """A NumPy copy of the values: float64 or complex128, or as they are. Raises `Unreadable` if there is none."""
    tensor = tensor.detach()
    if _nested(tensor):
        raise Unreadable("a nested tensor has no shape, so that its values are no array")
    if tensor.layout is torch.strided and tensor.numel() > 0 and tensor.untyped_storage().size() == 0:
        raise RuntimeError("the memory of this tensor was freed")
    try:
        if getattr(tensor, "is_quantized", False):
            tensor = tensor.dequantize()
        elif tensor.layout is torch.sparse_coo:
            # to_dense() loses the only value if it has no strides, as in the gradient of a sum.
            values = tensor._values().clone(memory_format=torch.contiguous_format)
            tensor = torch.zeros(tensor.shape, dtype=tensor.dtype, device=tensor.device).index_put_(
                tuple(tensor._indices()), values, accumulate=True
            )
        elif tensor.layout is not torch.strided:
            tensor = tensor.to_dense()
        wide = torch.complex128 if tensor.is_complex() else torch.float64
        dtype = wide if tensor.is_complex() or tensor.is_floating_point() else tensor.dtype
        # The CPU converts: the device may lack that dtype, or convert wrongly. A copy: the storage of a tensor that
        # NumPy has seen can never be resized again.
        return tensor.to("cpu").to(dtype, copy=True).numpy(force=True)
    except Exception as raised:
        what = f"a tensor of the class {type(tensor).__name__}, the layout {tensor.layout} and the dtype {tensor.dtype}"
        raise Unreadable(f"the values of {what} cannot be read as an array: {raised}") from raised


def fill(tensor: Any, value: Any) -> None:
    """Overwrite a tensor in place, with a number or with an array of its shape; a sparse one where it has values."""
    with torch.no_grad():
        if isinstance(value, np.ndarray):
            tensor.copy_(torch.as_tensor(np.array(value)))
        else:
            _values(tensor).fill_(value)


def shared(a: Any, b: Any) -> bool:
    """Whether an element of one tensor has a byte in common with an element of the other."""
    if _nested(a) or _nested(b):
        return False
    known = (torch.strided, *_VALUES)
    if a.layout not in known or b.layout not in known:
        return False
    return _overlap(_values(a), _values(b))


def _values(tensor: Any) -> Any:
    return _VALUES[tensor.layout](tensor.detach()) if tensor.layout in _VALUES else tensor


def _overlap(a: Any, b: Any) -> bool:
    if 0 in (a.numel(), b.numel()) or a.untyped_storage().data_ptr() != b.untyped_storage().data_ptr():
        return False
    return bool(np.isin(_addresses(a), _addresses(b)).any())


def _addresses(tensor: Any) -> Any:
    """The address of every byte that holds an element of the tensor."""
    steps = [np.arange(n) * step * tensor.element_size() for n, step in zip(tensor.shape, tensor.stride(), strict=True)]
    found = np.asarray(tensor.data_ptr())
    for step in (*steps, np.arange(tensor.element_size())):
        found = np.add.outer(found, step)
    return found.ravel()
