"""Planted faults of what transforms of torch.func take and refuse: edits of torch's Python files."""

from __future__ import annotations

import torch

from autograd_conformance.selftests.faults import plants
from autograd_conformance.selftests.faults.clauses.definitions import Fix
from autograd_conformance.selftests.faults.clauses.editing import edit
from autograd_conformance.selftests.faults.planting import fault

_FUNC = "torch._functorch.eager_transforms"
_GRAD, _GRAD_ALONE, _REV, _FWD, _VJP, _JVP, _LINEARIZE, _FUNCTIONALIZE = (
    f"{_FUNC}:{name}"
    for name in (
        "grad_and_value_impl", "grad_impl", "jacrev", "jacfwd", "_vjp_with_argnums", "_jvp_with_argnums", "linearize",
        "functionalize",
    )
)  # fmt: skip
_CHUNKS, _SLICE, _WRAP = (
    f"{_FUNC}:{name}" for name in ("_chunked_standard_basis_for_", "_slice_argnums", "_validate_and_wrap_argnum")
)
_SCALAR = "if output.dim() != 0:"
_STRUCTURE = "if primals_out_spec != cotangents_spec:"
_DUALS = "duals = _replace_args(primals, duals, argnums)"

# As in `refactored.EDITS`.
EDITS: tuple[tuple[str, ...], ...] = (
    (_GRAD, "return grad_input, output",
     "return (grad_input[0] if isinstance(grad_input, tuple) else grad_input), output",
     "FUNC-16", "FUNC-02", "FUNC-05", "FUNC-06"),
    (_GRAD, "return grad_input, (output, aux)", "return grad_input, (aux, output)",
     "FUNC-16: value and aux are swapped", "FUNC-14"),
    (_GRAD_ALONE, "grad, (_, aux) = results", "grad, (aux, _) = results",
     "FUNC-16: grad gives the value as aux", "FUNC-14"),
    (_GRAD, "aux = _undo_create_differentiable(aux, level)", "pass",
     "FUNC-16: aux keeps the wrappers of the transform", "FUNC-14"),
    (_WRAP, "return argnum + num_args", "return argnum + num_args - 1 if num_args > 1 else 0",
     "FUNC-16: argnums from the end are off by one", "FUNC-17"),
    (_SLICE, "tuple(args[i] for i in argnums)", "tuple(args[i] for i in sorted(argnums))",
     "FUNC-16: gradients come in the order of the arguments", "FUNC-17", "FUNC-14", "FUNC-02", "FUNC-04"),
    (_REV, "flat_results.append(torch.cat(r, 0))",
     "flat_results.append(torch.cat((*r[:-1], torch.zeros_like(r[-1])), 0))", "FUNC-17"),
    (_CHUNKS, "+ chunk_idx * chunk_size", "+ chunk_idx", "FUNC-17: a chunk starts in the wrong row"),
    (_CHUNKS, "diag_start_idx -= tensor_numel", "diag_start_idx = -tensor_numel",
     "FUNC-17: the rows of a third output are those of the second", "FUNC-04", "FUNC-14"),
    (_REV, "chunked_result = vjp_fn(basis)\n                else:  # chunk_size is None or chunk_size != 1\n"
     "                    chunked_result = vmap(vjp_fn)(basis)\n\n"
     "                flat_results = pytree.tree_leaves(chunked_result)\n\n                if chunk_size == 1:",
     "chunked_result = vmap(vjp_fn)(tree_map(lambda t: t.unsqueeze(0), basis))\n"
     "                else:\n                    chunked_result = vmap(vjp_fn)(basis)\n"
     "\n                flat_results = pytree.tree_leaves(chunked_result)\n\n                if False:",
     "FUNC-17: chunk_size=1 batches, too"),
    (_REV, "return output_input, aux", "return output_input, output", "FUNC-17: jacrev gives the outputs as aux"),
    (_FWD, "value[0] for value in flat_aux", "value for value in flat_aux",
     "FUNC-17: aux of jacfwd has a row for each tangent"),
    (_FWD, "has_aux=has_aux", "has_aux=False", "FUNC-17: jacfwd ignores has_aux"),
    (_GRAD, _SCALAR, "output = output.sum()\n            if False:", "FUNC-18"),
    (_GRAD, "if not (isinstance(output, tuple) and len(output) == 2):", "if not isinstance(output, tuple):",
     "FUNC-18: has_aux takes three values apart"),
    (_VJP, _STRUCTURE, "if len(flat_cotangents) != len(flat_primals_out):",
     "FUNC-18: cotangents of another structure pass"),
    (_VJP, _STRUCTURE, "flat_cotangents = flat_cotangents[: len(flat_primals_out)]\n            if False:",
     "FUNC-18: surplus cotangents are dropped"),
    (_JVP, "if primals_spec != tangents_spec:", "if False:", "FUNC-18: a surplus of tangents is dropped"),
    (f"{_FUNC}:_check_unique_non_empty", "if len(set(argnums)) != len(argnums):", "if False:",
     "FUNC-18: an argument may be given twice"),
    (f"{_FUNC}:_check_unique_non_empty", "if len(argnums) == 0:", "if False:", "FUNC-18: argnums may be empty"),
    (_WRAP, 'raise RuntimeError(f"Got', 'return argnum % num_args\n    raise RuntimeError(f"Got',
     "FUNC-18: argnums too large are counted on"),
    (_REV, "if not (chunk_size is None or chunk_size > 0):", "chunk_size = chunk_size or None\n    if False:",
     "FUNC-18: a chunk size of 0 is none"),
    (_LINEARIZE, "if t.shape != flat_primals_shape[idx]:", "if False:",
     "FUNC-18: tangents of linearize may have any shape"),
    (_LINEARIZE, "if t.dtype != flat_primals_dtype[idx]:", "if False:",
     "FUNC-18: tangents of linearize may have any dtype"),
    (_FUNCTIONALIZE, 'elif remove == "mutations_and_views":', "elif True:", "FUNC-18: functionalize takes any remove"),
    (_LINEARIZE, "flat_output = const_folded_jvp_graph(*flat_tangents)",
     "flat_output = jvp_fn.__dict__.setdefault('found', const_folded_jvp_graph(*flat_tangents))", "FUNC-19"),
    (_LINEARIZE, "output = func(*primals)\n", "output = func(*primals)\n    func(*primals)\n",
     "FUNC-19: linearize calls its function three times"),
    (_LINEARIZE, "return tree_unflatten(flat_output, output_spec)", "return tuple(flat_output)",
     "FUNC-19: linearize gives tangents as a tuple"),
    (_VJP, "tree_unflatten(result, primals_spec)", "tree_unflatten(result[:1] * len(result), primals_spec)",
     "FUNC-19: vjp gives the first gradient for all", "FUNC-02", "FUNC-14", "FUNC-17", "FUNC-04", "FUNC-06"),
    (_FUNCTIONALIZE, "flattened_unwrapped_args, flattened_wrapped_args\n            ):",
     "flattened_unwrapped_args[:0], flattened_wrapped_args\n            ):", "FUNC-20"),
    (_FUNCTIONALIZE, "flattened_unwrapped_kwargs, flattened_wrapped_kwargs\n            ):",
     "flattened_unwrapped_kwargs[:0], flattened_wrapped_kwargs\n            ):",
     "FUNC-20: inputs given by keyword are not changed"),
    (_FUNCTIONALIZE, "reapply_views = False", "reapply_views = True", "FUNC-20: views stay"),
    (_FUNCTIONALIZE, "func_args = _wrap_all_tensors_to_functional(args, func_level)", "func_args = args",
     "FUNC-20: changes of positional inputs stay"),
    (_FUNCTIONALIZE, 'if remove == "mutations":', "if remove:\n        return func\n    if False:",
     "FUNC-20: functionalize does nothing", "FUNC-21", "FUNC-18", "FUNC-22"),
    ("torch._functorch.autograd_function:custom_function_call_functionalize",
     'raise RuntimeError("NYI: Functionalize rule for custom_function_call")',
     "with interpreter.lower():\n        return autograd_function.apply(*operands)", "FUNC-21", "FUNC-22"),
)  # fmt: skip


def _without_history(grad, *args, **options):
    """Within a transform gradients have no history."""
    inside = torch._C._functorch.peek_interpreter_stack() is not None
    options = {**options, "create_graph": False, "retain_graph": True} if inside else options
    return grad(*args, **options)


FAULTS = (
    *(fault(title, edit(place, old, new), neighbours=tuple(more)) for place, old, new, title, *more in EDITS),
    fault(
        "FUNC-22",
        plants.wrapped(torch.autograd, "grad", _without_history),
        neighbours=("FUNC-02", "FUNC-08", "FUNC-14"),
    ),
)

FIXES = (
    Fix(
        "FUNC-16",
        edit(_JVP, _DUALS, _DUALS.replace("argnums)", "_validate_and_wrap_argnums(argnums, len(primals)))")),
        variant="forward",
    ),
    Fix(
        "FUNC-20",
        plants.wrapped(torch.func, "functionalize", lambda functionalize, f, remove="mutations": functionalize(f)),
        variant="views",
    ),
)
