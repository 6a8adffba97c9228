"""Faults of functional_call and stack_module_state, as lines of torch's Python files."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import torch
from torch.nn.utils import parametrize

from autograd_conformance.selftests.faults import plants
from autograd_conformance.selftests.faults.clauses.definitions import Fix
from autograd_conformance.selftests.faults.clauses.editing import edit
from autograd_conformance.selftests.faults.planting import fault

_STATELESS, _CALL = "torch.nn.utils.stateless", "torch._functorch.functional_call"
_UNTIE, _REPLACE = f"{_STATELESS}:_untie_named_tensors_map", f"{_STATELESS}:_reparametrize_module"
_STACK, _LEAF = f"{_CALL}:stack_module_state", f"{_CALL}:construct_stacked_leaf"
_MODES = "if not (all(m.training for m in models) or all(not m.training for m in models)):"
_REPEATED = "if len(repeated_keys) > 0:"

# The function, what it has, and what it has instead; the title.
EDITS: tuple[tuple[str, ...], ...] = (
    (_UNTIE, "if len(tied_names) > 1:", "if len(tied_names) > 2:", "FUNC-23"),
    (_UNTIE, "!= 1\n", "== 0\n", "FUNC-23: two values for a tied weight pass"),
    (_REPLACE, "if tie_weights:", "if True:", "FUNC-23: tie_weights=False is ignored"),
    (_REPLACE, "if strict:", "if False:", "FUNC-23: strict is ignored"),
    (f"{_CALL}:functional_call", _REPEATED, "if False:", "FUNC-23: of two values for a key the last one counts"),
    (f"{_STATELESS}:_functional_call", "if kwargs is None:", "if True:", "FUNC-23: keyword arguments are lost"),
    (_LEAF, "result = result.detach().requires_grad_()", "pass", "FUNC-24: what is stacked has a history"),
    (_LEAF, "result.detach().requires_grad_()", "result.detach()", "FUNC-24"),
    (_LEAF, "if not all_requires_grad and not none_requires_grad:", "if False:",
     "FUNC-24: requires_grad of one module decides"),
    (_STACK, _MODES, "if False:", "FUNC-24: modules of two modes are stacked"),
    (_STACK, "if len(models) == 0:", "if False:", "FUNC-24: an empty list raises another error"),
    (_STACK, "return params, buffers", "return params, {}", "FUNC-24: buffers are not stacked"),
)  # fmt: skip

FAULTS = tuple(fault(title, edit(place, old, new)) for place, old, new, title in EDITS)


def _without_parametrizations(call: Any, module: Any, state: Any, *args: Any, **options: Any) -> Any:
    """functional_call of a module in which no tensor of the state is parametrized."""
    plain = deepcopy(module)
    for name in state:
        if parametrize.is_parametrized(plain, name):
            parametrize.remove_parametrizations(plain, name)
    return call(plain, state, *args, **options)


FIXES = (
    Fix("FUNC-23", plants.wrapped(torch.func, "functional_call", _without_parametrizations), variant="parametrized"),
)
