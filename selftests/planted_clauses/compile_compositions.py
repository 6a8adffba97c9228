"""Faults of compiled transforms, changes in place, outputs that share memory, hooks and repeated runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any
from unittest.mock import patch

import torch

from autograd_conformance.selftests.planted_clauses.compile import compiled_apply, compiled_as, composite
from autograd_conformance.selftests.planted_clauses.definitions import Fix
from autograd_conformance.selftests.planted_clauses.intercept import around_backward, ctx_attribute, ctx_method
from autograd_conformance.selftests.planting import Fault


def _forgets() -> AbstractContextManager[Any]:
    return patch.object(torch.Tensor, "__iadd__", lambda x, _: x)


@contextmanager
def _keeps_one_cotangent() -> Iterator[None]:
    """Of several cotangents backward gets the first, and zeros for the others."""

    def backward(original: Any, ctx: Any, *cotangents: Any) -> Any:
        return original(ctx, cotangents[0], *(torch.zeros_like(g) for g in cotangents[1:]))

    with compiled_as(), around_backward(backward):
        yield


@contextmanager
def _shares_what_is_saved() -> Iterator[None]:
    """Every ctx has the saved tensors of the last one."""
    last: list[Any] = []

    def save(original: Any, ctx: Any, *tensors: Any) -> None:
        original(ctx, *tensors)
        last[:] = tensors

    with compiled_as(), ctx_method("save_for_backward", save), ctx_attribute("saved_tensors", lambda *_: tuple(last)):
        yield


def _materializes() -> AbstractContextManager[Any]:
    return compiled_as(lambda: ctx_method("set_materialize_grads", lambda *_: None))


def _without_hooks() -> AbstractContextManager[Any]:
    return compiled_as(lambda: patch.object(torch.Tensor, "register_hook", lambda *_: None))


FAULTS = (
    Fault("COMPILE-11", lambda: compiled_apply(composite)),
    Fault("COMPILE-12", lambda: compiled_as(_forgets)),
    Fault("COMPILE-13", _keeps_one_cotangent, says=("share memory",)),
    Fault("COMPILE-14", _materializes, says=("unused",)),
    Fault("COMPILE-15", _shares_what_is_saved),
    Fault("COMPILE-15", _without_hooks, says=("gradient of compiled code",), words="compiled code drops hooks"),
)

FIXES = tuple(
    Fix(clause, compiled_as, variant=variant)
    for clause, variant in (
        ("COMPILE-11", "grad"),
        ("COMPILE-11", "jvp"),
        ("COMPILE-11", "mapped"),
        ("COMPILE-12", "saved"),
        ("COMPILE-13", "twice"),
        ("COMPILE-13", "view"),
        ("COMPILE-14", ""),
    )
)
