"""Faults of gradients at kinks and of NaN cotangents."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

import torch
import torch.nn.functional as F  # noqa: N812 - the usual name

from autograd_conformance.selftests.planted_clauses.definitions import Fix
from autograd_conformance.selftests.planted_clauses.intercept import around_backward, replaced
from autograd_conformance.selftests.planting import Fault


def _half_at_zero(relu: Any) -> Any:
    return lambda x: (relu(x) + torch.where(x >= 0, x, 0.0)) / 2


@contextmanager
def _least_slopes_of_clamp() -> Iterator[None]:
    with ExitStack() as stack:
        stack.enter_context(patch.object(torch, "clamp", F.hardtanh))
        stack.enter_context(patch.object(torch, "clamp_min", lambda x, least: torch.relu(x - least) + least))
        stack.enter_context(patch.object(torch, "clamp_max", lambda x, most: most - torch.relu(most - x)))
        yield


@contextmanager
def _shared_fmax() -> Iterator[None]:
    with patch.object(torch, "fmax", torch.maximum), patch.object(torch, "fmin", torch.minimum):
        yield


def _without_nan(original: Any, ctx: Any, *cotangents: Any) -> Any:
    return original(ctx, *(None if g is None else torch.nan_to_num(g) for g in cotangents))


def _nan_everywhere(original: Any, ctx: Any, *cotangents: Any) -> Any:
    found = original(ctx, *cotangents)
    corrupted = any(g is not None and bool(g.isnan().any()) for g in cotangents)
    return found * torch.nan if corrupted else found


FAULTS = (
    Fault("KINK-01", lambda: replaced(torch, "relu", _half_at_zero)),
    Fault(
        "KINK-01",
        lambda: replaced(torch, "amax", lambda _: lambda x: torch.max(x, 0).values),
        words="amax gives its gradient to one entry",
    ),
    Fault(
        "KINK-01",
        lambda: replaced(torch.linalg, "vector_norm", lambda norm: lambda x, order: norm(x + 1e-300, order)),
        words="a norm at zero has gradient one",
    ),
    Fault("KINK-02", lambda: around_backward(_without_nan), says=("nan",)),
    Fault("KINK-02", lambda: around_backward(_nan_everywhere), says=("nan",), words="one NaN spoils all entries"),
    Fault(
        "KINK-02",
        lambda: replaced(torch, "relu", lambda _: lambda x: x * (x > 0)),
        words="relu multiplies its cotangent with a mask",
    ),
)

FIXES = (
    Fix("KINK-01", _least_slopes_of_clamp, variant="clamp"),
    Fix("KINK-01", _shared_fmax, variant="fmax"),
)
