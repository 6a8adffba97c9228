"""Faults of what is around a Function, as lines of torch's Python files: modules, wrapped tensors, compiled code."""

from __future__ import annotations

from autograd_conformance.selftests.faults.clauses.editing import edit
from autograd_conformance.selftests.faults.planting import fault

_DYNAMO = "torch._dynamo.variables"
_CONTEXTS, _CALLED = f"{_DYNAMO}.ctx_manager", f"{_DYNAMO}.misc:AutogradFunctionVariable"
_OUT, _INPLACE = "torch.library:_validate_out_schema", "torch.library:_validate_inplace_schema"
_WRAPPED = "torch.distributed.algorithms._checkpoint.checkpoint_wrapper"
_PARAMETRIZE = "torch.nn.utils.parametrize"
_LIST = f"{_PARAMETRIZE}:ParametrizationList"
_DISPATCH = "torch.utils._python_dispatch"
_MAKE, _BACKWARD = "torch.autograd:_make_grads", "torch.autograd:backward"
_GRAPH, _AOT = "torch.autograd.graph", "torch._functorch._aot_autograd.runtime_wrappers"

# The function, what it has, and what it has instead; the title, and the other clauses that it breaks.
EDITS: tuple[tuple[str, ...], ...] = (
    (_MAKE, "if is_grads_batched:\n                    raise", "if False:\n                    raise", "ENG-19"),
    (_MAKE, "if not shape_matches:", "if False:", "ENG-19: cotangents may have another shape"),
    ("torch.autograd:_calculate_shape", 'raise RuntimeError("Batched grads are not supported with GradientEdge")',
     "return output.node._input_metadata[output.output_nr].shape, grad.shape", "ENG-19: an edge takes a batch"),
    (_BACKWARD, "if grad_variables is not None:", "if False:", "ENG-19: the older name of cotangents is ignored"),
    (_BACKWARD, "if torch._C._are_functorch_transforms_active():", "if False:",
     "ENG-19: backward runs within a transform"),
    (f"{_GRAPH}:register_multi_grad_hook", "if mode not in supported_modes:", "if False:",
     "ENG-19: a hook takes any mode"),
    (f"{_GRAPH}:allow_mutation_on_saved_tensors", "if _allow_mutation_on_saved_tensors_enabled:", "if False:",
     "ENG-19: blocks that allow changes may be nested"),
    ("torch._library.autograd:make_autograd_impl", "(*schema.arguments, *schema.returns)", "(*schema.arguments,)",
     "LIB-01: a list of results counts only beside a list of arguments"),
    ("torch.utils.hooks:RemovableHandle.__exit__", "self.remove()", "pass",
     "HOOK-09: the block of a handle keeps its hook"),
    (f"{_LIST}.right_inverse", "_maybe_set(original_i, tensor)", "pass", "MODULE-08"),
    (f"{_LIST}.right_inverse", "_maybe_set(self.original, value)", "pass",
     "MODULE-08: a value set does not reach a single original"),
    (f"{_LIST}.__init__", "originali = Parameter(originali, original.requires_grad)", "pass",
     "MODULE-08: of several originals none is a parameter"),
    (f"{_PARAMETRIZE}:register_parametrization", "if X.shape != Y.shape:", "if False:",
     "MODULE-08: a second parametrization may change the shape"),
    (f"{_DISPATCH}:return_and_correct_aliasing", "if schema_info.is_inplace_view_op:", "if False:", "FN-32"),
    (f"{_DISPATCH}:transform_subclass", "callback(attr, getattr(t, attr))", "getattr(t, attr)",
     "FN-32: the inner tensors are not transformed"),
    (_OUT, "if len(returns) != len(mutable_args):", "if len(returns) > len(mutable_args):", "LIB-27"),
    (_OUT, "if positional_mutable:", "if False:", "LIB-27: what is filled may be given by position"),
    (_INPLACE, "if other_mutable:", "if False:", "LIB-27: other arguments may be changed"),
    (_INPLACE, "if not ret.alias_info.is_write:", "if False:", "LIB-27: what is given may be a view"),
    ("torch.library:register_autocast", "_op(*_cast(args, device_type, cast_inputs))", "_op(*args)",
     "LIB-20: in autocast the arguments are not cast"),
    (f"{_WRAPPED}:CheckpointWrapper.__init__", "use_reentrant=(self.checkpoint_impl == CheckpointImpl.REENTRANT)",
     "use_reentrant=False", "CKPT-27"),
    (f"{_WRAPPED}:CheckpointWrapper.__init__", "if checkpoint_fn is None:", "if True:",
     "CKPT-27: a function for checkpoints is ignored"),
    (f"{_WRAPPED}:apply_activation_checkpointing", "lambda_fn=check_fn", "lambda_fn=lambda _: True",
     "CKPT-27: check_fn is ignored"),
    (f"{_GRAPH}:region_activation_memory_budget", "if not torch.compiler.is_compiling():", "if False:", "COMPILE-21"),
    ("torch._functorch.partitioners:min_cut_rematerialization_partition", "if unannotated_fw_ops:", "if False:",
     "COMPILE-21: a budget of some operations is that of all"),
    (f"{_AOT}:_AutogradSavedState.save_from_forward", "ctx.save_for_backward(*tensors_to_save)",
     "ctx.save_for_backward(*self.__dict__.setdefault('kept', tensors_to_save))",
     "COMPILE-15: all calls of a graph have the saved tensors of the first"),
    (f"{_CONTEXTS}:GradModeVariable._call_func", "if torch.is_grad_enabled() != value:", "if False:", "COMPILE-20"),
    (f"{_CONTEXTS}:InferenceModeVariable.enter", "(*self.target_values,)", "(not self.target_values[0],)",
     "COMPILE-20: compiled code takes inference_mode for its opposite"),
    (f"{_CONTEXTS}:AutocastModeVariable.enter", "torch.amp._enter_autocast, (*self.target_values,)",
     "torch.amp._enter_autocast, (*self.target_values[:2], False, *self.target_values[3:])",
     "COMPILE-20: autocast is off in compiled code"),
    (f"{_CALLED}._resolve_kwargs", "result.append(kwargs[name])", "result.append([*kwargs.values()][i - len(args)])",
     "COMPILE-20: keywords are taken in the order of the call"),
    (f"{_DYNAMO}.tensor:TensorVariable.method_attr_data", "torch._C._autograd._get_data_attr", "torch.clone",
     "COMPILE-20: x.data has a history"),
    (f"{_DYNAMO}.tensor:TensorVariable.method_detach_", "self.synchronize_attributes(tx)", "pass",
     "COMPILE-20: what detach_ gives requires grad in compiled code"),
)  # fmt: skip

FAULTS = tuple(fault(title, edit(place, old, new), neighbours=tuple(more)) for place, old, new, title, *more in EDITS)
