"""Control of Python's garbage collector while a test looks at what is alive."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without_collector() -> Iterator[None]:
    """Objects are freed with their last reference, never by the garbage collector."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


@contextmanager
def small_garbage() -> Iterator[None]:
    """Collecting garbage is cheap: it looks only at objects that were made within."""
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
