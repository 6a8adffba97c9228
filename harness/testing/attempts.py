"""Calls of a user's code that may raise anything, where another test reports what it raises."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from autograd_conformance.harness.testing.own_faults import noticed

T = TypeVar("T")


def attempted(action: Callable[..., T], *given: Any) -> T | None:
    """The result of an action, or None if it raises an exception."""
    try:
        return action(*given)
    except Exception as raised:  # noqa: BLE001 - a user's code may raise anything
        noticed(raised)
        return None


def raised_by(action: Callable[..., Any], *given: Any) -> Exception | None:
    """The exception that an action raises, or None."""
    try:
        action(*given)
    except Exception as raised:  # noqa: BLE001 - a user's code may raise anything
        noticed(raised)
        return raised
    return None
