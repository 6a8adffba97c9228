"""States of autocast, for what runs under one and is observed in another."""

from __future__ import annotations

from typing import Any

import torch

from autograd_conformance.harness.testing.clauses import ClauseSubject

LOWER = ("bfloat16", "float16")


def states(subject: ClauseSubject) -> tuple[str, ...]:
    """The states of autocast on the subject's device: off, or the dtype in which it is on."""
    return ("off", *subject.implementation.autocast_dtypes)


def autocast(subject: ClauseSubject, state: str) -> Any:
    """Autocast of the subject's device in this state."""
    dtype = getattr(torch, subject.implementation.autocast_dtypes[0] if state == "off" else state)
    return torch.autocast(subject.device, dtype=dtype, enabled=state != "off")


def autocast_state(subject: ClauseSubject) -> str:
    """The state in which autocast is now."""
    dtype = str(torch.get_autocast_dtype(subject.device)).removeprefix("torch.")
    return dtype if torch.is_autocast_enabled(subject.device) else "off"
