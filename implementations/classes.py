"""What is a class."""

from __future__ import annotations

from typing import Any, TypeGuard


def derives(value: Any, base: Any) -> TypeGuard[Any]:
    """Whether a value is a class that is derived from a base.

    ``isinstance(value, type)`` also holds for proxies, and in Python 3.10 for ``list[int]``: neither is a class.
    """
    return all(issubclass(type(each), type) for each in (value, base)) and issubclass(value, base)
