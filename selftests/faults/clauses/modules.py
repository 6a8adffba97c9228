"""Planted faults of backward hooks of modules, and of parametrizations: edits of torch's Python files."""

from __future__ import annotations

import torch.nn.utils.parametrize  # noqa: F401 - whose functions are edited

from autograd_conformance.selftests.faults.clauses.editing import edit
from autograd_conformance.selftests.faults.planting import fault

_HOOK, _MODULE = "torch.utils.hooks:BackwardHook", "torch.nn.modules.module:Module"
_USER, _IN, _OUT = f"{_HOOK}._set_user_hook", f"{_HOOK}._apply_on_tensors", f"{_HOOK}.setup_output_hook"
_FULL, _PRE = f"{_MODULE}.register_full_backward_hook", f"{_MODULE}.register_full_backward_pre_hook"
_HOOKS, _PRE_HOOKS = f"{_MODULE}._get_backward_hooks", f"{_MODULE}._get_backward_pre_hooks"
_CALL = f"{_MODULE}._call_impl"
_FUNCTION, _PARAMETRIZED = "torch.nn.modules._functions:BackwardHookFunction", "torch.nn.utils.parametrize"
_LAST = "self._backward_hooks.move_to_end(handle.id, last=False)"
_LAST_PRE = "self._backward_pre_hooks.move_to_end(handle.id, last=False)"
_OWN = "            full_backward_hooks += self._backward_hooks.values()"
_OWN_FIRST = "            full_backward_hooks = [*self._backward_hooks.values(), *full_backward_hooks]"
_ALL = "all(el is None for el in res)"

# As in `refactored.EDITS`.
EDITS: tuple[tuple[str, ...], ...] = (
    (_USER, "res = out", "pass", "MODULE-01"),
    (_USER, "if out is None:", "if out is None or len(out) == 1:",
     "MODULE-01: a single gradient is not replaced", "MODULE-06"),
    (_USER, "hook(self.module, res, self.grad_outputs)", "hook(self.module, grad_input, self.grad_outputs)",
     "MODULE-01: hooks get no entry for what is no tensor", "MODULE-04", "MODULE-06"),
    (_USER, "hook(self.module, res, self.grad_outputs)", "hook(self.module, list(res), self.grad_outputs)",
     "MODULE-01: grad_input is a list"),
    (_USER, "            self.grad_outputs = None\n\n", "", "MODULE-01: hooks run again where only inputs are reached"),
    (_USER, "if self.grad_outputs is None:", "if False:",
     "MODULE-01: hooks run in a pass that does not reach the outputs"),
    (_USER, "for hook in self.user_hooks:", "for hook in self.user_hooks[:1]:",
     "MODULE-01: of several hooks one runs", "MODULE-04", "MODULE-06"),
    (f"{_HOOK}._pack_with_none", "[None] * size", "[None] * (indices[-1] + 1 if indices else size)",
     "MODULE-01: no entries after the last tensor", "MODULE-06"),
    (f"{_HOOK}._unpack_none", "values[idx] for idx in indices", "values[i] for i, _ in enumerate(indices)",
     "MODULE-01: what hooks return is counted without what is no tensor", "MODULE-02", "MODULE-04"),
    (_FULL, "RemovableHandle(self._backward_hooks)", "RemovableHandle(self._backward_hooks.copy())",
     "MODULE-01: remove does nothing", "MODULE-05"),
    (f"{_FUNCTION}.backward", "return args", "return tuple(None if g is None else g.detach() for g in args)",
     "MODULE-01: what passes a module's hooks is not differentiated"),
    (_OUT, "self.grad_outputs = hook_grad_outputs", "pass", "MODULE-02"),
    (_OUT, "return tuple(local_grad_outputs[i] for i in self.output_tensors_index)", "return None",
     "MODULE-02: hooks get what a pre-hook returns, and backward does not"),
    (_OUT, "for user_pre_hook in self.user_pre_hooks:", "for user_pre_hook in self.user_pre_hooks[-1:]:",
     "MODULE-02: the last pre-hook alone runs", "MODULE-04"),
    (_OUT, "user_pre_hook(self.module, self.grad_outputs)", "user_pre_hook(self.module, grad_output)",
     "MODULE-02: pre-hooks do not see what others returned", "MODULE-03", "MODULE-06"),
    (_OUT, "self._pack_with_none(self.output_tensors_index,", "self._pack_with_none(range(len(grad_output)),",
     "MODULE-02: entries are moved by outputs that are no tensors", "MODULE-01", "MODULE-03", "MODULE-06"),
    (_OUT, "local_grad_outputs[i] for i in", "local_grad_outputs[i] if i else grad_output[0] for i in",
     "MODULE-02: the gradient of the first output is not replaced"),
    (_OUT, "self.n_outputs = len(args)", "self.n_outputs = len(output_idx or ())",
     "MODULE-02: as many entries as tensors", "MODULE-01", "MODULE-03", "MODULE-06"),
    (_PRE, "RemovableHandle(self._backward_pre_hooks)", "RemovableHandle(self._backward_pre_hooks.copy())",
     "MODULE-02: remove does nothing", "MODULE-05"),
    (_OUT, "if self.input_tensors_index is None:", "if False:", "MODULE-03", "MODULE-06"),
    (_OUT, "self._pack_with_none([], [], self.n_inputs)", "()", "MODULE-03: grad_input is empty", "MODULE-06"),
    (_OUT, "user_hook(self.module, grad_inputs, self.grad_outputs)",
     "user_hook(self.module, grad_inputs, grad_output)",
     "MODULE-03: hooks get no entry for outputs that are no tensors"),
    (_OUT, "if self.input_tensors_index is None:", "if not self.input_tensors_index and self.n_inputs:",
     "MODULE-03: hooks do not fire without positional arguments"),
    (_OUT, "for user_hook in self.user_hooks:", "for user_hook in self.user_hooks[:1]:",
     "MODULE-03: without inputs one hook alone runs"),
    (_HOOKS, _OWN, _OWN_FIRST, "MODULE-04"),
    (_FULL, _LAST, "pass", "MODULE-04: prepend changes nothing"),
    (_PRE, _LAST_PRE, "pass", "MODULE-04: prepend of a pre-hook changes nothing"),
    (_PRE, "last=False", "last=True", "MODULE-04: prepend puts a pre-hook last"),
    (_PRE_HOOKS, "backward_pre_hooks += _global_backward_pre_hooks.values()", "pass",
     "MODULE-04: pre-hooks of all modules do not run", "MODULE-05"),
    (_PRE_HOOKS, "backward_pre_hooks += self._backward_pre_hooks.values()",
     "backward_pre_hooks = [*self._backward_pre_hooks.values(), *backward_pre_hooks]",
     "MODULE-04: own pre-hooks run before those of all modules"),
    (_CALL, "if self._backward_hooks or _global_backward_hooks:", "if self._backward_hooks:",
     "MODULE-04: hooks of all modules run where a module has its own", "MODULE-05"),
    (_CALL, "if self._backward_pre_hooks or _global_backward_pre_hooks:", "if self._backward_pre_hooks:",
     "MODULE-04: pre-hooks of all modules run where a module has its own", "MODULE-05"),
    (_IN, "_functions.BackwardHookFunction.apply(*tensors)",
     "_functions.BackwardHookFunction.apply(*(t.clone() for t in tensors))", "MODULE-05"),
    (_IN, "arg_list[idx] = val", "arg_list[idx] = val if val.requires_grad else arg_list[idx]",
     "MODULE-05: tensors that require no grad are passed as they are"),
    (_CALL, "args = bw_hook.setup_input_hook(args)", "bw_hook.setup_input_hook(args)",
     "MODULE-05: forward gets its inputs as they are", "MODULE-01", "MODULE-04", "MODULE-06"),
    (_CALL, "result = bw_hook.setup_output_hook(result)", "bw_hook.setup_output_hook(result)",
     "MODULE-05: the caller gets the outputs as they are",
     "MODULE-01", "MODULE-02", "MODULE-03", "MODULE-04", "MODULE-06"),
    (_USER, "if len(out) != len(res):", "if False:", "MODULE-06"),
    (_USER, "if len(out) != len(res):", "if len(out) < len(res):", "MODULE-06: a surplus of gradients is dropped"),
    (_OUT, "if actual_len != expected_len:", "if actual_len < expected_len:",
     "MODULE-06: a surplus of a pre-hook is dropped"),
    (_OUT, "if res is not None and not (isinstance(res, tuple) and all(el is None for el in res)):", "if False:",
     "MODULE-06: without inputs what a hook returns is dropped"),
    (_OUT, _ALL, "any(el is None for el in res)", "MODULE-06: without inputs one None is enough"),
    (_OUT, _ALL, "res[0] is None", "MODULE-06: without inputs the first value alone is looked at"),
    (_OUT, _ALL, "not res", "MODULE-06: without inputs a tuple of None is refused"),
    (f"{_PARAMETRIZED}:ParametrizationList.forward", "return x", "return x.detach()", "MODULE-07"),
    (f"{_PARAMETRIZED}:ParametrizationList.forward", "while hasattr(self, str(curr_idx)):", "while curr_idx < 1:",
     "MODULE-07: the first parametrization alone counts"),
)  # fmt: skip

FAULTS = tuple(fault(title, edit(place, old, new), neighbours=tuple(more)) for place, old, new, title, *more in EDITS)
