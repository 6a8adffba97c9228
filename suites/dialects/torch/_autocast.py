"""States of autocast, for what runs under one and is observed in another."""

from __future__ import annotations

from typing import Any

import torch

from autograd_conformance.harness.testing.clauses import ClauseSubject

LOWER = ("bfloat16", "float16")
# The state of autocast: off, or the dtype in which it is on.
STATES = ("off", *LOWER)


def autocast(subject: ClauseSubject, state: str) -> Any:
    """Autocast of the subject's device in this state."""
    dtype = getattr(torch, "bfloat16" if state == "off" else state)
    return torch.autocast(subject.device, dtype=dtype, enabled=state != "off")


def autocast_state(subject: ClauseSubject) -> str:
    """The state in which autocast is now."""
    dtype = str(torch.get_autocast_dtype(subject.device)).removeprefix("torch.")
    return dtype if torch.is_autocast_enabled(subject.device) else "off"
