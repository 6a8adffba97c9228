"""Faults of gradients at kinks and of NaN cotangents."""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812 - the usual name

from autograd_conformance.selftests import plants
from autograd_conformance.selftests.planted_clauses.definitions import Fix
from autograd_conformance.selftests.planting import fault


def _nan_everywhere(original, ctx, *cotangents):
    found = original(ctx, *cotangents)
    corrupted = any(g is not None and bool(g.isnan().any()) for g in cotangents)
    return found * torch.nan if corrupted else found


_LEAST_SLOPES_OF_CLAMP = {
    "clamp": F.hardtanh,
    "clamp_min": lambda x, least: torch.relu(x - least) + least,
    "clamp_max": lambda x, most: most - torch.relu(most - x),
}

FAULTS = (
    fault("KINK-01", plants.wrapped(torch, "relu", lambda relu, x: (relu(x) + torch.where(x >= 0, x, 0.0)) / 2)),
    fault("KINK-01: amax gives its gradient to one entry", plants.put(torch, "amax", lambda x: torch.max(x, 0).values)),
    fault(
        "KINK-01: a norm at zero has gradient one",
        plants.wrapped(torch.linalg, "vector_norm", lambda norm, x, order: norm(x + 1e-300, order)),
    ),
    fault("KINK-02", plants.each_cotangent(torch.nan_to_num), "nan"),
    fault("KINK-02: one NaN spoils all entries", plants.around_backward(_nan_everywhere), "nan"),
    fault("KINK-02: relu multiplies its cotangent with a mask", plants.put(torch, "relu", lambda x: x * (x > 0))),
)

FIXES = (
    Fix(
        "KINK-01",
        lambda: plants.all_of(*(plants.put(torch, *pair) for pair in _LEAST_SLOPES_OF_CLAMP.items())),
        variant="clamp",
    ),
    Fix(
        "KINK-01",
        lambda: plants.all_of(plants.put(torch, "fmax", torch.maximum), plants.put(torch, "fmin", torch.minimum)),
        variant="fmax",
    ),
)
