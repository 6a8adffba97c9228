"""Faults of torch's Python files in an argument, a default or a container that few callers use."""

from __future__ import annotations

import torch.utils.checkpoint  # noqa: F401 - whose functions are edited

from autograd_conformance.selftests.planted_clauses.editing import edit
from autograd_conformance.selftests.planting import Fault

_CHECKPOINT, _SELECTIVE = "torch.utils.checkpoint", "torch.utils.checkpoint:create_selective_checkpoint_contexts"
_CHECK, _FUNCTIONAL = "torch.autograd.gradcheck", "torch.autograd.functional"
_OPERATORS, _LIBRARY = "torch._library.autograd", "torch.library:register_autograd"
_AMP, _GRAPH = "torch.amp.autocast_mode", "torch.autograd.graph"
_SEQUENCE = f"{_CHECKPOINT}:checkpoint_sequential"
_OP_OF_LIST = "if not isinstance(op, (torch._ops.OpOverload, torch._ops.HigherOrderOperator)):"
# A Function without a backward that returns its argument gives the argument itself.
_PASSED_THROUGH = (
    "y = super().apply(*args, **kwargs)\n"
    "            bare = cls.backward is Function.backward and isinstance(y, torch.Tensor) and y.requires_grad\n"
    "            return args[0] if bare and y._base is args[0] else y"
)

# What gradgradcheck asks for as well.
_NEIGHBOURS = {"check_batched_grad checks nothing": ("CHECK-07",)}

# The function, what it has, and what it has instead; the clause, and what that does.
EDITS: tuple[tuple[str, str, str, str, str], ...] = (
    (_SEQUENCE, "segment_size * (segments - 1)", "segment_size * segments", "CKPT-17", ""),
    (_SEQUENCE, "end = start + segment_size - 1", "end = start", "CKPT-17", "of each segment the first function runs"),
    (_SEQUENCE, "use_reentrant=use_reentrant", "use_reentrant=True", "CKPT-17", "each segment is reentrant"),
    (_SEQUENCE, "if kwargs:", "if False:", "CKPT-11", "a sequence drops keyword arguments"),
    (f"{_CHECKPOINT}:checkpoint", "if kwargs and use_reentrant:", "if False:",
     "CKPT-11", "the reentrant variant drops keyword arguments"),
    (f"{_CHECKPOINT}:checkpoint", "if context_fn is not noop_context_fn or debug is not False:", "if False:",
     "CKPT-11", "the reentrant variant drops context_fn and debug"),
    (f"{_CHECKPOINT}:check_backward_validity", "if not any(", "if False and not any(", "CKPT-18", ""),
    (_SELECTIVE, "storage, allow_cache_entry_mutation)", "storage)", "CKPT-19", ""),
    (_SELECTIVE, "storage, allow_cache_entry_mutation)", "storage, True)",
     "CKPT-19", "a change of a saved tensor goes unnoticed"),
    (_SELECTIVE, _OP_OF_LIST, "if False:", "CKPT-15", "a list may hold what no call is of"),
    (f"{_CHECKPOINT}:_CachingTorchDispatchMode.__torch_dispatch__",
     "func, *args, **kwargs)\n        if isinstance(policy", "func)\n        if isinstance(policy",
     "CKPT-15", "a policy gets no arguments"),
    (f"{_OPERATORS}:make_autograd_impl", "if isinstance(result, tuple):", "if True:",
     "LIB-01", "a gradient that is no tuple is taken apart"),
    (f"{_OPERATORS}:make_autograd_impl", "if info._setup_context_fn:", "if True:",
     "LIB-01", "a formula needs a setup_context"),
    (f"{_OPERATORS}:make_autograd_impl", "utils.is_tensorlist_like_type(a.type)", "False",
     "LIB-01", "tensors in lists are not differentiated"),
    (f"{_OPERATORS}:supports_tensorlist", "_pytree.tree_unflatten(list(grads), metadata.output_spec)", "list(grads)",
     "LIB-01", "the cotangents of a list come one by one"),
    (_LIBRARY, "(backward, setup_context=setup_context)", "(backward)",
     "LIB-01", "register_autograd drops the setup_context of a custom operator"),
    (_LIBRARY, "Info(backward, setup_context)", "Info(backward, None)",
     "LIB-01", "register_autograd drops the setup_context of an operator in a library"),
    (f"{_AMP}:_cast", "value.device.type == device_type", "True", "AMP-03", "cast_inputs casts on every device"),
    (f"{_AMP}:_cast", "isinstance(value, (str, bytes))", "False", "AMP-03", "cast_inputs takes text apart"),
    (f"{_AMP}:_cast", "isinstance(value, collections.abc.Mapping):",
     "isinstance(value, collections.abc.Mapping):\n        return value\n    elif False:",
     "AMP-03", "cast_inputs does not look into dicts"),
    (f"{_AMP}:_cast", "isinstance(value, (list, tuple))", "isinstance(value, list)",
     "AMP-03", "cast_inputs makes a generator of a tuple"),
    (f"{_GRAPH}:increment_version", "_increment_version(tensor)", "_increment_version(tuple(tensor)[:1])",
     "SAVE-14", ""),
    (f"{_GRAPH}:increment_version", "torch._C._increment_version(tensor)", "pass",
     "SAVE-14", "increment_version does nothing"),
    (f"{_FUNCTIONAL}:vhp", "_grad_postprocess(vhp, create_graph)", "_grad_postprocess(vhp, False)",
     "FUNC-11", "vhp is never recorded"),
    (f"{_FUNCTIONAL}:hvp", "_grad_postprocess(hvp, create_graph)", "_grad_postprocess(hvp, False)",
     "FUNC-11", "hvp is never recorded"),
    (f"{_FUNCTIONAL}:_fill_in_zeros", "if strict:", "if False:", "FUNC-11", "strict changes nothing"),
    (f"{_FUNCTIONAL}:_fill_in_zeros", "torch.zeros_like", "torch.ones_like",
     "FUNC-11", "an input on which nothing depends has ones"),
    (f"{_CHECK}:_gradcheck_helper", "        eps,\n        rtol,\n", "        1e-6,\n        rtol,\n",
     "CHECK-01", "eps is ignored"),
    (f"{_CHECK}:_allclose_with_type_promotion", "torch.allclose(a, b, rtol, atol)", "torch.allclose(a, b, 1e-3, 1e-5)",
     "CHECK-01", "atol and rtol are ignored"),
    (f"{_CHECK}:_gradcheck_helper", "if check_batched_grad:", "if False:",
     "CHECK-01", "check_batched_grad checks nothing"),
    (f"{_CHECK}:_gradcheck_helper", "if check_batched_forward_grad:", "if False:",
     "CHECK-01", "check_batched_forward_grad checks nothing"),
    (f"{_CHECK}:_gradcheck_helper", "check_backward_ad=check_backward_ad", "check_backward_ad=True",
     "CHECK-01", "backward is checked in any case"),
    ("torch.autograd.grad_mode:inference_mode.__init__", "self.mode = mode", "self.mode = True",
     "MODE-05", "inference_mode cannot be off"),
    ("torch.autograd.anomaly_mode:set_detect_anomaly.__init__", "(mode, check_nan)", "(True, check_nan)",
     "ANOM-01", "set_detect_anomaly cannot switch it off"),
    ("torch.autograd:_make_grads", "all(o == 1 for o in out_size)", "True",
     "NODE-06", "an edge never needs a cotangent"),
    ("torch.autograd:grad", "requires_grad=create_graph", "requires_grad=False",
     "ENG-07", "zeros of an unused input are never recorded"),
    ("torch.autograd:grad", "allow_none_pass_through=True", "allow_none_pass_through=False",
     "VMAP-07", "an unused input of a batch of cotangents is an error"),
    (f"{_GRAPH}:_get_grad_fn_or_grad_acc", "with torch.enable_grad():", "if True:",
     "NODE-06", "under no_grad a leaf has no edge"),
    (f"{_GRAPH}:register_multi_grad_hook", "            if tensor.requires_grad\n", "",
     "HOOK-10", "in mode any each tensor has to require grad"),
    ("torch.autograd.function:Function.apply", "return super().apply(*args, **kwargs)", _PASSED_THROUGH,
     "FN-16", "without a backward an argument that is returned passes through"),
)  # fmt: skip

FAULTS = tuple(
    Fault(clause, edit(place, old, new), neighbours=_NEIGHBOURS.get(words, ()), words=words)
    for place, old, new, clause, words in EDITS
)
