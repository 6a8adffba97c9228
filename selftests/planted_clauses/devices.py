"""Faults of devices, as far as they can be planted without an accelerator."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from autograd_conformance.selftests.planted_clauses.intercept import around_backward, replaced
from autograd_conformance.selftests.planting import Fault


@contextmanager
def _left_where_they_are() -> Iterator[None]:
    returned: list[Any] = []

    def backward(original: Any, ctx: Any, *cotangents: Any) -> Any:
        found = original(ctx, *cotangents)
        returned[:] = found if isinstance(found, tuple) else (found,)
        return found

    def grad(original: Any) -> Any:
        def giving(*args: Any, **options: Any) -> Any:
            original(*args, **options)
            return tuple(returned)

        return giving

    with around_backward(backward), replaced(torch.autograd, "grad", grad):
        yield


def _moves_everything(original: Any, ctx: Any, *cotangents: Any) -> Any:
    found = original(ctx, *cotangents)
    (g,) = found if isinstance(found, tuple) else (found,)
    return g.to(cotangents[0].device)


FAULTS = (
    Fault("DEV-01", _left_where_they_are, says=("device of a gradient",)),
    Fault(
        "DEV-01",
        lambda: around_backward(_moves_everything),
        says=("not a scalar",),
        words="gradients of any shape move to another device",
    ),
)
