"""Faults as a refactoring of torch's Python files makes them: a wrong condition, a dropped line, a swapped order."""

from __future__ import annotations

import torch.utils.checkpoint  # noqa: F401 - whose functions are edited

from autograd_conformance.selftests.planted_clauses.editing import edit
from autograd_conformance.selftests.planting import Fault, fault
from autograd_conformance.selftests.plants import all_of

_FUNCTION, _GRAPH, _GRAD_MODE = "torch.autograd.function", "torch.autograd.graph", "torch.autograd.grad_mode"
_CUSTOM, _FUNC = "torch._functorch.autograd_function", "torch._functorch.eager_transforms"
_AOT = "torch._functorch._aot_autograd.runtime_wrappers"
_AMP, _CHECKPOINT = "torch.amp.autocast_mode", "torch.utils.checkpoint"
_PLAIN = f"{_CHECKPOINT}:_checkpoint_without_reentrant_generator"
_NO_GLOBAL = "_checkpoint_debug_enabled if _checkpoint_debug_enabled is not None else debug"
_STOP = "_enable_checkpoint_early_stop if _enable_checkpoint_early_stop is not None else early_stop"
_SIZE = "            batch_size,\n            "
_ENDED = (
    "yield ctx\n        finally:\n            ctx.clear()\n            _allow_mutation_on_saved_tensors_enabled = False"
)
_ENDED_IN_TIME = (
    "yield ctx\n            _allow_mutation_on_saved_tensors_enabled = False\n        finally:\n            ctx.clear()"
)
# What follows is left out after most exceptions.
_NOT_AFTER_ALL = "    except ZeroDivisionError:\n        pass\n    else:"

# The function, what it has, and what it has instead; the clause, what that does, and the other clauses that it breaks.
EDITS: tuple[tuple[str, str, str, str, str, tuple[str, ...]], ...] = (
    (f"{_FUNCTION}:once_differentiable", "= any(", "= all(",
     "ONCE-02", "double backward raises only if all cotangents require grad", ("ONCE-07",)),
    (f"{_FUNCTION}:FunctionCtx.save_for_forward", " or tensor is None", "",
     "JVP-12", "save_for_forward refuses None", ("JVP-15",)),
    (f"{_FUNCTION}:Function.apply", "bound_args.apply_defaults()", "pass",
     "FN-12", "defaults of forward are not filled in", ()),
    (f"{_FUNCTION}:BackwardCFunction._get_user_fn", "if backward_fn", "if None and backward_fn",
     "FN-18", "a class with backward and vjp is accepted", ()),
    (f"{_GRAPH}:register_multi_grad_hook", "= sum(", "= len_tensors or sum(",
     "HOOK-10", "a hook in mode all waits for every tensor", ()),
    (f"{_GRAPH}:register_multi_grad_hook", "prev, ran_hook[id] = ran_hook[id]", "prev, ran_hook[0] = ran_hook[0]",
     "HOOK-10", "a hook in mode any fires in one pass alone", ()),
    (f"{_GRAPH}:_MultiHandle.remove", "self.handles", "self.handles[:1]",
     "HOOK-10", "remove removes the first hook alone", ()),
    (f"{_GRAPH}:disable_saved_tensors_hooks", "if maybe_prev_message is None", "if True",
     "PACK-04", "hooks are enabled where an inner block ends", ()),
    (f"{_GRAPH}:Node.__subclasshook__", "issubclass(subclass, torch.autograd.function.BackwardCFunction)", "False",
     "NODE-01", "the node of a custom Function is no Node", ()),
    (f"{_GRAPH}:_get_tid", "tensor._version", "0",
     "PACK-08", "a changed tensor is taken for what was saved before", ()),
    (f"{_GRAPH}:allow_mutation_on_saved_tensors", "ctx.clear()", "pass", "PACK-10", "", ()),
    (f"{_CHECKPOINT}:_get_autocast_kwargs", "torch.get_autocast_dtype('cpu')", "torch.bfloat16",
     "CKPT-01", "forward runs again with the default dtype of autocast", ()),
    (_PLAIN, "enabled=preserve_rng_state", "enabled=bool(rng_devices)",
     "CKPT-05", "the generator is restored with devices alone", ()),
    (f"{_CHECKPOINT}:CheckpointFunction.backward", "if ctx.preserve_rng_state:",
     "if ctx.preserve_rng_state and ctx.had_device_in_fwd:",
     "CKPT-05", "the reentrant recomputation draws other numbers", ()),
    (f"{_CHECKPOINT}:checkpoint_sequential", "preserve_rng_state=preserve", "preserve_rng_state=True",
     "CKPT-06", "checkpoint_sequential drops preserve_rng_state", ()),
    (f"{_CHECKPOINT}:_default_meta_extractor", "x.dtype", "None", "CKPT-07", "dtypes are not compared", ("CKPT-13",)),
    (_PLAIN, _STOP, "early_stop", "CKPT-10", "early_stop overrides set_checkpoint_early_stop", ()),
    (_PLAIN, "fn(*args, **kwargs)", "fn(*args)", "CKPT-11", "", ()),
    (_PLAIN, "forward_context, recompute_context = c", "recompute_context, forward_context = c",
     "CKPT-12", "", ("CKPT-13", "CKPT-15", "CKPT-19")),
    (f"{_CHECKPOINT}:_checkpoint_hook.__init__", "frame.unpack_error_cb(e)", "raise", "CKPT-13", "", ()),
    (_PLAIN, _NO_GLOBAL, "_checkpoint_debug_enabled or debug",
     "CKPT-13", "debug overrides set_checkpoint_debug_enabled", ()),
    (f"{_CUSTOM}:CtxCustomSave.save_for_forward", "self._pt_saved_tensors_bdims = bdims", "pass",
     "VMAP-02", "the batched dimensions of what jvp alone saves are forgotten", ()),
    (f"{_CUSTOM}:reductify_leaf", "new_shape[input_bdim] = batch_size", "pass",
     "VMAP-02", "a gradient that all calls share is not expanded", ()),
    (f"{_CUSTOM}:reductify_leaf", "if target_shape_without_bdim_to_reduce_to is not None", "if False",
     "VMAP-02", "a gradient with more dimensions is not summed", ()),
    (f"{_CUSTOM}:vmapify_autograd_function", "in_dim if grad_output is not None else None", "in_dim",
     "VMAP-02", "a missing cotangent is taken for a batched one", ()),
    (f"{_CUSTOM}:custom_function_call_vmap", "if has_overridden", "if None and has_overridden",
     "VMAP-03", "of two rules the generated one is taken", ()),
    (f"{_CUSTOM}:custom_function_call_vmap_helper", "interpreter.randomness()", "'error'",
     "VMAP-04", "info.randomness is a constant", ()),
    (f"{_CUSTOM}:validate_vmap_returns_tuple_of_two_elements", "not len(result) == 2", "None",
     "VMAP-05", "three values are accepted", ()),
    (f"{_CUSTOM}:generate_single_level_function", "_set_fwd_grad_enabled(True)", "_set_fwd_grad_enabled(False)",
     "FUNC-14", "forward mode ends at the first Function below a gradient", ()),
    (f"{_FUNC}:grad_and_value_impl", "torch.enable_grad()", "contextlib.nullcontext()", "FUNC-13", "", ()),
    (f"{_FUNC}:_vjp_with_argnums", "torch.enable_grad()", "contextlib.nullcontext()",
     "FUNC-13", "func.vjp respects no_grad around it", ()),
    (f"{_AMP}:custom_bwd", "dtype=args[0]._dtype", "dtype=None", "AMP-01", "custom_bwd has the default dtype", ()),
    (f"{_AMP}:custom_bwd", "args[0]._fwd_used_autocast", "torch.is_autocast_enabled(device_type)",
     "AMP-01", "custom_bwd is on or off as the pass is", ("AMP-03",)),
    (f"{_AMP}:custom_fwd", "enabled=False", "enabled=True", "AMP-03", "cast_inputs leaves forward under autocast", ()),
    (f"{_AMP}:custom_fwd", "if autocast_context", "if True", "AMP-03", "cast_inputs casts everywhere", ()),
    (f"{_AMP}:_cast", "value.is_floating_point()", "True", "AMP-03", "cast_inputs takes integers for floats", ()),
    (f"{_GRAD_MODE}:no_grad.__exit__", "self.prev", "True", "MODE-05", "", ()),
    (f"{_GRAD_MODE}:enable_grad.__exit__", "self.prev", "exc_type is None and self.prev",
     "MODE-05", "an exception that leaves enable_grad switches grad mode off", ()),
    (f"{_GRAD_MODE}:set_grad_enabled.__exit__", "self.prev", "True",
     "MODE-05", "set_grad_enabled switches grad mode on when it ends", ()),
    (f"{_FUNCTION}:Function.apply", "args = _functorch.utils.unwrap_dead_wrappers(args)", "pass",
     "FUNC-02", "a backward that calls another Function gets wrappers of a transform that is over", ()),
    (f"{_GRAPH}:register_multi_grad_hook", "if curr_count == 0", "if nb_calls is None",
     "HOOK-10", "mode all waits for what the first pass needed", ()),
    (f"{_GRAPH}:save_on_cpu.__init__", "dtype=tensor.dtype,", "",
     "PACK-08", "pinned memory has the default dtype", ()),
    (f"{_GRAPH}:allow_mutation_on_saved_tensors", _ENDED, _ENDED_IN_TIME,
     "PACK-10", "after an exception mutation stays allowed", ()),
    (f"{_CHECKPOINT}:detach_variable", "x.requires_grad = inp.requires_grad", "x.requires_grad = x.is_floating_point()",
     "CKPT-01", "in the reentrant recomputation every tensor requires grad", ()),
    (f"{_CHECKPOINT}:CheckpointFunction.backward", "args_with_grad.append(args[i])",
     "args_with_grad.append(args[sum(map(torch.is_tensor, outputs[:i]))])",
     "CKPT-01", "the reentrant variant counts tensors where it gets a gradient for each output", ("CKPT-03",)),
    (f"{_CHECKPOINT}:set_checkpoint_early_stop", "    finally:", _NOT_AFTER_ALL,
     "CKPT-10", "after an exception set_checkpoint_early_stop stays", ()),
    (f"{_CHECKPOINT}:set_checkpoint_debug_enabled", "    finally:", _NOT_AFTER_ALL,
     "CKPT-13", "after an exception set_checkpoint_debug_enabled stays", ()),
    (f"{_CHECKPOINT}:_CachingTorchDispatchMode.__torch_dispatch__",
     "in (CheckpointPolicy.MUST_SAVE, CheckpointPolicy.PREFER_SAVE)", "is CheckpointPolicy.MUST_SAVE",
     "CKPT-15", "", ()),
    (f"{_CUSTOM}:reductify_leaf", "movedim(grad_input_bdim, input_bdim)", "movedim(input_bdim, grad_input_bdim)",
     "VMAP-02", "the batch of a tangent moves the wrong way", ()),
    (f"{_CUSTOM}:reductify_leaf", "grad_input.sum(grad_input_bdim)", "grad_input.sum(0)",
     "VMAP-02", "a gradient that all calls share is summed over its first dimension", ()),
    (f"{_CUSTOM}:vmapify_autograd_function", "ctx._pt_out_dims.update({key: out_dims})",
     "ctx._pt_out_dims = {key: out_dims}",
     "VMAP-02", "of nested vmaps one knows where outputs are batched", ("VMAP-07", "VMAP-09")),
    (f"{_CUSTOM}:vmapify_autograd_function", "= get_tangents_in_dims(in_dims, tangents)", "= in_dims",
     "VMAP-02", "a missing tangent is taken for a batched one", ()),
    (f"{_CUSTOM}:vmapify_autograd_function",
     f"grad_outputs_in_dims),),\n{_SIZE}randomness,", f"grad_outputs_in_dims),),\n{_SIZE}'error',",
     "VMAP-10", "", ()),
    (f"{_CUSTOM}:generate_single_level_function", ", _set_fwd_grad_enabled(True)", "",
     "FUNC-14", "forward mode does not reach what an inner gradient transform returns", ()),
    (f"{_FUNC}:jvp_increment_nesting", "    finally:", _NOT_AFTER_ALL,
     "FUNC-15", "", tuple(f"FUNC-{number:02}" for number in (1, 3, 4, 5, 10, 11, 13))),
    (f"{_GRAPH}:_CloneArgBeforeMutateMode.__torch_dispatch__", 'maybe_clone(kwargs["out"])', "pass",
     "PACK-08", "a change by out= is not noticed", ()),
    (f"{_GRAPH}:_CloneArgBeforeMutateMode.__torch_dispatch__", "in args[idx]:", "in args[idx][:1]:",
     "PACK-08", "of a list the first tensor alone is kept", ()),
    (f"{_GRAPH}:register_multi_grad_hook", "del buffer[id]", "pass",
     "HOOK-10", "mode all keeps the gradients of each pass", ()),
    ("torch.autograd.forward_ad:dual_level.__exit__", "exit_dual_level()", "exc_type is None and exit_dual_level()",
     "JVP-16", "after an exception the level stays", tuple(f"JVP-{number:02}" for number in range(1, 16))),
    (f"{_AOT}:_AutogradSavedState.save_from_forward", "ctx.save_for_backward(*tensors_to_save)",
     "ctx.save_for_backward(*self.__dict__.setdefault('kept', tensors_to_save))",
     "COMPILE-15", "all calls of a graph have the saved tensors of the first", ()),
    ("torch.autograd:grad", "gO,\n                retain_graph,\n                create_graph,",
     "gO,\n                retain_graph,\n                False,",
     "VMAP-07", "a batch of gradients is never recorded", ()),
)  # fmt: skip


def _keeps_arguments():
    """The reentrant variant keeps its arguments as an attribute of ctx."""
    function = f"{_CHECKPOINT}:CheckpointFunction"
    return all_of(
        edit(f"{function}.forward", "ctx.save_for_backward(*tensor_inputs)", "ctx.kept = tensor_inputs"),
        edit(f"{function}.backward", "tensors = ctx.saved_tensors", "tensors = ctx.kept"),
    )


FAULTS = (
    *(
        Fault(clause, edit(place, old, new), neighbours=neighbours, words=words)
        for place, old, new, clause, words, neighbours in EDITS
    ),
    fault("CKPT-16", _keeps_arguments),
)
