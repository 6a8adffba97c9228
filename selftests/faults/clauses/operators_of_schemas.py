"""Faults of operators that are defined from a schema, and of schemas: edits of torch's Python files."""

from __future__ import annotations

from autograd_conformance.selftests.faults.clauses.editing import edit
from autograd_conformance.selftests.faults.planting import fault
from autograd_conformance.selftests.faults.plants import numbers

_LIBRARY, _CUSTOM, _FAKE = "torch.library", "torch._library.custom_ops", "torch._library.fake_impl"
_IMPL, _SCHEMAS = f"{_LIBRARY}:_impl", "torch._library.infer_schema"
_CHECKS = "torch.testing._internal.optests.generate_tests"
_TRITON_OP, _INFERRED = "torch._library.triton:triton_op", "infer_schema(fn, mutates_args=mutates_args)"
_INFER = f"{_SCHEMAS}:infer_schema"
# What breaks with the changes that an operator says it makes.
_CHANGES = numbers("LIB", 5, 18, 19, 23, 24)

# As in `refactored`: the function, what it has and what it has instead; the title, and the clauses that it breaks too.
EDITS: tuple[tuple[str, ...], ...] = (
    (f"{_FAKE}:FakeImplHolder.register", "self.kernels.remove(kernel)\n\n", "pass\n\n", "LIB-20"),
    (f"{_LIBRARY}:Library._register_torch_dispatch_rule", "self._registration_handles.append(handle)", "pass",
     "LIB-20: a rule for a mode outlives its Library"),
    (f"{_LIBRARY}:_del_library", "_clear_torch_ops_cache(op_defs)", "pass",
     "LIB-20: torch.ops has an operator whose Library is gone"),
    (f"{_LIBRARY}:register_fake", "_library_for_registration(namespace, lib)",
     "_library_for_registration(namespace, None)", "LIB-20: register_fake drops lib"),
    (f"{_LIBRARY}:register_vmap", "_library_for_registration(namespace, lib)",
     "_library_for_registration(namespace, None)", "LIB-20: register_vmap drops lib"),
    (f"{_LIBRARY}:register_torch_dispatch", "_library_for_registration(namespace, lib)",
     "_library_for_registration(namespace, None)", "LIB-20: register_torch_dispatch drops lib"),
    (_IMPL, "use_lib = lib", "use_lib = Library(namespace, 'FRAGMENT')", "LIB-20: impl drops lib"),
    (_IMPL, "keys.add(_device_type_to_key(typ))", "keys = {_device_type_to_key(typ)}",
     "LIB-20: of several devices the last one has the kernel"),
    (f"{_LIBRARY}:_device_type_to_key", '"default"', '"all"', "LIB-20: default is no device"),
    (f"{_LIBRARY}:_resolve_op_for_registration", "op = op._name", "op = op._name.split('::')[1]",
     "LIB-20: an OpOverload loses its namespace"),
    (f"{_LIBRARY}:define", "lib.define(name + schema,", "lib.define(name + schema.split('=')[0] + ') -> Tensor',",
     "LIB-20: define drops the defaults"),
    (f"{_LIBRARY}:Library.impl", "if (not allow_override) and key in _impls:", "if False:", "LIB-21"),
    (f"{_LIBRARY}:Library.impl", "if (not allow_override) and key in _impls:", "if key in _impls:",
     "LIB-21: a second kernel raises whatever allow_override says", "LIB-26"),
    (f"{_FAKE}:FakeImplHolder.register", "self.kernels.append(kernel)", "self.kernels.insert(0, kernel)",
     "LIB-21: the first fake kernel stays", "LIB-24"),
    (f"{_LIBRARY}:define", "if not NAMELESS_SCHEMA.fullmatch(schema):", "if False:",
     "LIB-21: a schema with a name is accepted"),
    (f"{_LIBRARY}:Library.__init__", "if ns in _reserved_namespaces and", "if False and",
     "LIB-21: a reserved namespace is free"),
    (_INFER, "if op_name is not None:", "if False:", "LIB-22"),
    (_INFER, "if not saw_kwarg_only_arg:", "if True:", "LIB-22: each keyword-only parameter has a star", "LIB-15"),
    (_INFER, "if schema_type.startswith(\"Tensor\"):", "if schema_type == \"Tensor\":",
     "LIB-22: unknown leaves out lists and optional tensors"),
    (_INFER, "elif name in mutates_args:", "elif False:", "LIB-22: mutates_args is ignored", *_CHANGES),
    (_INFER, "if not schema_type.startswith(\"Tensor\"):", "if False:", "LIB-22: a number may change"),
    (_INFER, "default_repr = f'\"{param.default}\"'", "default_repr = str(param.default)",
     "LIB-22: text as a default has no quotes"),
    (_INFER, "default_repr = dtype_repr[len(torch_dot) :]", "default_repr = dtype_repr",
     "LIB-22: a dtype as a default has its module"),
    (_INFER, "mutates_args_not_seen = set(mutates_args) - seen_args", "mutates_args_not_seen = ()",
     "LIB-22: what changes may be no parameter"),
    (_INFER, "if not supported_param(param):", "if False:", "LIB-22: any number of arguments is one"),
    (_INFER, "return GenericAlias(origin, args), True", "return origin, True",
     "LIB-22: strings within a type are not read"),
    (_INFER, "elif name in mutates_args:", "elif name in mutates_args and not schema_type.endswith('?'):",
     "LIB-05: an optional tensor never changes", "LIB-22"),
    (_INFER, "tags = (tags,)", "tags = ()", "LIB-22: a tag that is in no list is ignored", *numbers("LIB", 18, 19, 24)),
    (_INFER, "out_arg_aliases.append(f\"a{idx}\")", "out_arg_aliases.insert(0, f'a{idx}')",
     "LIB-22: tensors to fill are returned from the last to the first", "LIB-18", "LIB-24"),
    (f"{_SCHEMAS}:_infer_out_return_schema", "if not return_annotation_matches_out_args:", "if False:",
     "LIB-22: one result is enough for two tensors to fill"),
    (_TRITON_OP, _INFERRED, f"{_INFERRED}.replace('=2.5', '')", "LIB-03: a triton_op has no defaults"),
    (_TRITON_OP, f"mutates_args=mutates_args,\n            schema={_INFERRED}",
     "mutates_args=(),\n            schema=infer_schema(fn, mutates_args=())", "LIB-23"),
    (f"{_CUSTOM}:CustomOpDef._register_fake_dispatcher_impl", "if self._abstract_fn is None:",
     "if self._abstract_fn is None or self._is_inplace or self._is_out:",
     "LIB-24: a fake kernel that is registered for an operator with a tag is ignored"),
    (f"{_CUSTOM}:CustomOpDef.register_torch_dispatch", "self._torch_dispatch_fns[torch_dispatch_class] = fn",
     "self._torch_dispatch_fns.setdefault(torch_dispatch_class, fn)", "LIB-25: the first rule stays"),
    (f"{_LIBRARY}:get_kernel", "if isinstance(dispatch_key, str):", "if True:", "LIB-26"),
    (f"{_SCHEMAS}:parse_return", "if annotation is inspect.Parameter.empty:", "if False:",
     "LIB-22: the message does not say that the result has no type"),
    (f"{_SCHEMAS}:parse_return", "in args:\n        if arg", "in args[:1]:\n        if arg",
     "LIB-22: of several results the first one counts"),
    (f"{_SCHEMAS}:tuple_to_list", "[type_args[0]]  # type: ignore[valid-type]\n    else", "\n    else",
     "LIB-22: the message names no list to take"),
    (f"{_CUSTOM}:custom_op", "if expected != set(mutates_args):", "if False:",
     "LIB-03: a schema may deny mutates_args"),
    (f"{_CUSTOM}:custom_op", "if schema is None:", "if True:", "LIB-03: a schema that is given is not used",
     "LIB-11", "LIB-23"),
    (f"{_CUSTOM}:CustomOpDef.register_kernel", "\"Functions without tensor", "None and \"Functions without tensor",
     "LIB-06: the message does not say what an operator without tensors needs"),
    (f"{_CHECKS}:opcheck", "if (rtol is None) ^ (atol is None):", "if False:",
     "LIB-13: a tolerance alone is accepted"),
    (f"{_CHECKS}:opcheck", "rtol=rtol, atol=atol", "rtol=None, atol=None", "LIB-13: rtol and atol are ignored"),
)  # fmt: skip

FAULTS = tuple(fault(title, edit(place, old, new), neighbours=tuple(more)) for place, old, new, title, *more in EDITS)
