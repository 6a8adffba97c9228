"""Planted faults of what vmap takes and refuses: edits of torch's Python files, and of what its C++ refuses."""

from __future__ import annotations

import torch

from autograd_conformance.selftests.faults import plants
from autograd_conformance.selftests.faults.clauses.editing import edit
from autograd_conformance.selftests.faults.planting import fault

_VMAP = "torch._functorch.vmap"
_IN, _OUT, _ONE = f"{_VMAP}:_process_batched_inputs", f"{_VMAP}:_unwrap_batched", f"{_VMAP}:_maybe_remove_batch_dim"
_CHUNKS, _CHUNKED, _CONCAT = (
    f"{_VMAP}:{name}" for name in ("_get_chunked_inputs", "_chunked_vmap", "_concat_chunked_outputs")
)
_SIZES = f"{_VMAP}:_validate_and_get_batch_size"
_CALLED = "batched_outputs = func(*batched_inputs, **kwargs)"

# As in `refactored.EDITS`.
EDITS: tuple[tuple[str, ...], ...] = (
    (_CONCAT, "dim=out_dim", "dim=0", "VMAP-11"),
    (_CONCAT, "torch.cat(chunk, dim=out_dim)", "torch.cat(chunk[:2], dim=out_dim)",
     "VMAP-11: two chunks alone count", "VMAP-10"),
    (f"{_VMAP}:get_chunk_sizes", "if remainder != 0:", "if False:", "VMAP-11: the last chunk is left out"),
    (_CHUNKS, "dim=in_dim)", "dim=0)", "VMAP-11: chunks are taken along the first dimension"),
    (_CHUNKED, "out_dims,\n                randomness", "0,\n                randomness",
     "VMAP-11: out_dims are not those of a chunk"),
    (_CHUNKED, "randomness,\n                **kwargs,", "randomness,", "VMAP-11: chunks get no keyword arguments"),
    (f"{_VMAP}:_flat_vmap", _CALLED, "batched_outputs = func(*batched_inputs)",
     "VMAP-11: keyword arguments are dropped"),
    (f"{_VMAP}:_flat_vmap", _CALLED,
     "kwargs = {k: _add_batch_dim(v, 0, vmap_level) if isinstance(v, Tensor) and v.dim() else v\n"
     f"                  for k, v in kwargs.items()}}\n        {_CALLED}", "VMAP-11: keyword arguments are batched"),
    (_IN, "flat_in_dims[i] = in_dim % arg.dim()", "flat_in_dims[i] = 0",
     "VMAP-11: negative dimensions are the first one", "VMAP-01", "VMAP-02", "VMAP-03", "VMAP-04", "VMAP-08"),
    (_OUT, "zip(flat_batched_outputs, flat_out_dims)",
     "zip(flat_batched_outputs, flat_out_dims[:1] * len(flat_out_dims))",
     "VMAP-11: the first of out_dims holds for all outputs"),
    (_OUT, "return tree_unflatten(flat_outputs, output_spec)", "return tuple(flat_outputs)",
     "VMAP-11: outputs come as a tuple",
     "VMAP-02", "VMAP-05", "VMAP-06", "VMAP-08", "VMAP-09", "VMAP-10", "VMAP-12", "VMAP-13", "VMAP-14"),
    (f"{_VMAP}:_create_batched_inputs", "zip(flat_in_dims, flat_args)",
     "zip([isinstance(a, Tensor) and flat_in_dims[0] or d for a, d in zip(flat_args, flat_in_dims)], flat_args)",
     "VMAP-11: the first of in_dims holds for all arguments", "VMAP-01", "VMAP-02", "VMAP-03", "VMAP-08"),
    (_IN, "if flat_in_dims is None:",
     "if flat_in_dims is None:\n        flat_in_dims = [0] * len(flat_args)\n    if False:", "VMAP-12"),
    (_ONE, "if not isinstance(batched_output, torch.Tensor):",
     "if not isinstance(batched_output, torch.Tensor):\n        return batched_output\n    if False:",
     "VMAP-12: outputs that are no tensors pass"),
    (_SIZES, "if len(batch_sizes) == 0:", "if len(batch_sizes) == 0:\n        return 1\n    if False:",
     "VMAP-12: a function without batched arguments is called once"),
    (_IN, "if not isinstance(in_dim, int) and in_dim is not None:",
     "if isinstance(in_dim, float):\n            in_dim = flat_in_dims[i] = int(in_dim)\n        if False:",
     "VMAP-12: fractions in in_dims are rounded"),
    (_IN, "if isinstance(in_dim, int) and not isinstance(arg, Tensor):",
     "if isinstance(in_dim, int) and not isinstance(arg, Tensor):\n            in_dim = flat_in_dims[i] = None\n"
     "        if False:", "VMAP-12: a number is taken as not batched"),
    (_IN, "if in_dim is not None and (in_dim < -arg.dim() or in_dim >= arg.dim()):",
     "if in_dim is not None:\n            in_dim = flat_in_dims[i] = in_dim % arg.dim()\n        if False:",
     "VMAP-12: a dimension too large is counted from the first"),
    (_OUT, "        if broadcast_result is None:\n            incompatible_error()",
     "        if broadcast_result is None:\n            flat_out_dims = [0] * len(flat_batched_outputs)",
     "VMAP-12: out_dims of another structure are 0"),
    (_OUT, "isinstance(out_dims, tuple) and len(out_dims) == 1", "isinstance(out_dims, tuple)",
     "VMAP-12: of out_dims that are too long the first counts"),
    (f"{_VMAP}:_check_randomness_arg", 'if randomness not in ["error", "different", "same"]:', "if False:",
     "VMAP-12: any randomness is accepted"),
    (f"{_VMAP}:_flat_vmap", _CALLED, f"func(*batched_inputs, **kwargs)\n        {_CALLED}",
     "VMAP-15", "VMAP-10", "VMAP-02", "VMAP-04", "VMAP-06", "VMAP-13"),
    (_CHUNKED, "if rs is not None:", "if False:", "VMAP-10: with chunks the same numbers are other ones"),
    (_CHUNKED, 'if randomness == "same"', "if True", "VMAP-10: with chunks different numbers repeat"),
    ("torch._functorch.eager_transforms:jacfwd", "vmap(push_jvp, randomness=randomness)",
     "vmap(push_jvp, randomness='same')", "VMAP-10: jacfwd ignores randomness"),
)  # fmt: skip


def _of_the_first_call(read, x):
    """What is batched is its first entry."""
    while torch._C._functorch.is_batchedtensor(x):
        x = torch._C._functorch.get_unwrapped(x).select(torch._C._functorch.maybe_get_bdim(x), 0)
    return read(x)


def _written(write, to, *of):
    """What is not batched gets the values of the first call."""
    batched = torch._C._functorch.is_batchedtensor
    if not batched(to):
        of = [_of_the_first_call(lambda x: x, x) if isinstance(x, torch.Tensor) and batched(x) else x for x in of]
    return write(to, *of)


def _of_tensors(name, method):
    return plants.wrapped(torch.Tensor, name, method)


FAULTS = (
    *(fault(title, edit(place, old, new), neighbours=tuple(more)) for place, old, new, title, *more in EDITS),
    fault("VMAP-13", _of_tensors("item", _of_the_first_call), "item"),
    fault("VMAP-13: a condition is that of the first call", _of_tensors("__bool__", _of_the_first_call)),
    fault("VMAP-13: a float is that of the first call", _of_tensors("__float__", _of_the_first_call)),
    fault("VMAP-13: nonzero is that of the first call", plants.wrapped(torch, "nonzero", _of_the_first_call)),
    fault(
        "VMAP-13: out is left as it was",
        plants.wrapped(torch, "add", lambda add, a, b, out=None: add(a, b)),
        "no error",
    ),
    fault("VMAP-14", _of_tensors("add_", _written), "no error"),
    fault("VMAP-14: copy_ takes the first call", _of_tensors("copy_", _written), "no error"),
)
