"""Faults of transforms within each other."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch._C._functorch import TransformType, _unwrap_for_grad, _wrap_for_grad
from torch._functorch import autograd_function as rules
from torch.autograd.forward_ad import _set_fwd_grad_enabled
from torch.utils._pytree import tree_map, tree_map_only

from autograd_conformance.selftests.planted_clauses.definitions import Fix
from autograd_conformance.selftests.planted_clauses.intercept import replaced
from autograd_conformance.selftests.planting import Fault


def _tangents(change: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def around(original: Any) -> Any:
        def jvp(*args: Any, **options: Any) -> Any:
            outputs, tangents = original(*args, **options)
            return outputs, tree_map(change, tangents)

        return jvp

    return around


def _with_nested_forward_mode() -> AbstractContextManager[Any]:
    """jvp runs one level further out, where the tangents of that level count."""

    def generate(original: Any) -> Any:
        def generated(interpreter: Any, cls: Any) -> Any:
            level, single = interpreter.level(), original(interpreter, cls)

            def out(values: Any) -> Any:
                return tree_map_only(torch.Tensor, lambda x: _unwrap_for_grad(x, level), values)

            def jvp(ctx: Any, *tangents: Any) -> Any:
                ctx = rules.CtxWithSavedTensors(ctx, out(ctx.saved_tensors))
                with _set_fwd_grad_enabled(True), interpreter.lower():
                    found = cls.jvp(ctx, *out(tangents))
                return tree_map_only(torch.Tensor, lambda t: _wrap_for_grad(t, level), found)

            if interpreter.key() == TransformType.Jvp:
                single.jvp = staticmethod(jvp)
            return single

        return generated

    return replaced(rules, "generate_single_level_function", generate)


FAULTS = (Fault("FUNC-14", lambda: replaced(torch.func, "jvp", _tangents(torch.Tensor.detach))),)

FIXES = (Fix("FUNC-14", _with_nested_forward_mode, variant="forward"),)
