"""Faults of checkpointing in what it keeps, in the state that it restores, and in whom it asks."""

from __future__ import annotations

from autograd_conformance.selftests.faults.clauses.definitions import Fix
from autograd_conformance.selftests.faults.clauses.editing import edit
from autograd_conformance.selftests.faults.planting import fault

_CHECKPOINT = "torch.utils.checkpoint"
_PLAIN, _HOOK = f"{_CHECKPOINT}:_checkpoint_without_reentrant_generator", f"{_CHECKPOINT}:_checkpoint_hook.__init__"
_REENTRANT, _AUTOCAST = f"{_CHECKPOINT}:CheckpointFunction", f"{_CHECKPOINT}:_get_autocast_kwargs"
_FIRST = f"{_CHECKPOINT}:_CachingTorchDispatchMode.__torch_dispatch__"

# As in `refactored`: the function, what it has and what it has instead; the title, and the clauses that it breaks too.
EDITS: tuple[tuple[str, ...], ...] = (
    (_HOOK, "holder = _Holder()", "holder = _Holder()\n            holder.kept = x", "CKPT-20"),
    (_HOOK, "frame.weak_holders.append(weakref.ref(holder))",
     "frame.weak_holders.append(weakref.ref(holder))\n            frame.__dict__.setdefault('kept', []).append(x)",
     "CKPT-20: a frame keeps what is saved"),
    (_PLAIN, "        contextlib.nullcontext(),\n    )\n",
     "contextlib.nullcontext(),\n    ) and contextlib.nullcontext()\n", "CKPT-21"),
    (_PLAIN, "reversed(_get_current_function_mode_stack())", "_get_current_function_mode_stack()",
     "CKPT-21: the recomputation has the outermost device"),
    (_AUTOCAST, "torch.is_autocast_cache_enabled(),\n    }", "True,\n    }",
     "CKPT-21: the cache of autocast is always on"),
    (_HOOK, "if gid is None:", "if True:", "CKPT-24"),
    (f"{_CHECKPOINT}:GraphExecGroup.__exit__", "_set_graph_exec_group(None)", "_set_graph_exec_group(args[0] and self)",
     "CKPT-24: after an exception the group stays"),
    (f"{_CHECKPOINT}:GraphExecGroup.__enter__", "if torch._C._get_graph_exec_group() is not None:", "if False:",
     "CKPT-24: groups can be nested"),
    (f"{_REENTRANT}.forward", "torch.no_grad()", "torch.enable_grad()", "CKPT-22", "CKPT-16"),
    (f"{_REENTRANT}.backward", "if len(outputs_with_grad) == 0:", "if not outputs:",
     "CKPT-22: outputs that are all detached are accepted"),
    (_FIRST, "is_recompute=False", "is_recompute=True", "CKPT-23"),
    (f"{_CHECKPOINT}:_policy_from_bool", "if b else", "if not b else", "CKPT-23: True stands for recomputing"),
    ("torch._functorch.partitioners:has_recomputable_rng_ops", "return True", "return False", "CKPT-25"),
    (f"{_CHECKPOINT}:checkpoint_sequential", "if use_reentrant is None:",
     "use_reentrant = use_reentrant is not False\n    if False:", "CKPT-04: a sequence is silently reentrant"),
    (f"{_CHECKPOINT}:checkpoint_sequential", "input = functions[j](input)", "input = functions[start](input)",
     "CKPT-17: of each segment the first function is called"),
)  # fmt: skip

FAULTS = tuple(fault(title, edit(place, old, new), neighbours=tuple(more)) for place, old, new, title, *more in EDITS)

FIXES = (
    Fix(
        "CKPT-15",
        edit(_FIRST, "if policy in (", "if policy.name.endswith('OFFLOAD') or policy in ("),
        variant="offload",
    ),
    Fix(
        "CKPT-25",
        edit(
            "torch._higher_order_ops.wrap:tag_activation_checkpoint_impl",
            'kwargs["preserve_rng_state"] = False',
            'kwargs["preserve_rng_state"] = True',
        ),
        variant="eager",
    ),
)
