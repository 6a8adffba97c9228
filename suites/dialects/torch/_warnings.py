"""Warnings of torch, also those that normally appear once per process."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch


@contextmanager
def every_warning() -> Iterator[None]:
    """Warnings that normally appear once per process appear every time."""
    always = torch.is_warn_always_enabled()
    torch.set_warn_always(True)
    try:
        yield
    finally:
        torch.set_warn_always(always)


def warned(action: Callable[[], Any], of: str) -> list[str]:
    """The messages of the action's warnings that have these words; a device may warn of something else."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        action()
    return [text for warning in caught if of in (text := str(warning.message))]
