"""Faults that programs meet: of torch's Python files, as a refactoring makes them."""

from __future__ import annotations

import torch._higher_order_ops.register_hook
import torch.utils.checkpoint  # noqa: F401 - the functions of these are edited

from autograd_conformance.selftests.faults.clauses.editing import edit
from autograd_conformance.selftests.faults.planting import fault

_HOOK = "torch._higher_order_ops.register_hook:RegisterHookOp.__call__"
_RECOMPUTED = "torch.utils.checkpoint:_recomputation_hook.__init__"

# The function, what it has, and what it has instead; the title.
EDITS = (
    (_HOOK, "        tensor.register_hook(hook)\n", "",
     "PROG-01/ahead: compiled code hooks nothing that it computes itself"),
    (_RECOMPUTED, "[holder.handles[gid]] = x", "[holder.handles[gid]] = 2 * x",
     "PROG-02: what a recomputation saves is doubled"),
    ("torch._functorch.eager_transforms:_vjp_with_argnums", "func(*primals)", "func(*(x + x for x in primals))",
     "PROG-03: func.vjp gives its function tensors that are doubled"),
)  # fmt: skip


FAULTS = tuple(fault(title, edit(place, old, new)) for place, old, new, title in EDITS)
