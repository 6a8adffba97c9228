"""A compiler as tests use it: without caches, and allowed to refuse a full graph."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import pytest
import torch

BACKENDS = ("eager", "aot_eager")

# Devices for which inductor brings a back end. That of another one is registered with it.
_OWN_BACK_ENDS = ("cpu", "cuda", "xpu", "mps")


@contextmanager
def fresh() -> Iterator[None]:
    """A compiler without caches that starts no processes."""
    # Imported here: it takes as long as torch itself, and most shards do not need it.
    import torch._dynamo
    import torch._inductor.config

    torch._dynamo.reset()
    try:
        with torch._inductor.config.patch(compile_threads=1, force_disable_caches=True):
            yield
    finally:
        torch._dynamo.reset()


def skip_without_inductor(device: str) -> None:
    """Skip the test if inductor has no back end for the device."""
    from torch._inductor.codegen.common import get_scheduling_for_device

    if device not in _OWN_BACK_ENDS and get_scheduling_for_device(device) is None:
        pytest.skip(f"inductor has no back end for {device}")


def assert_right_or_refused(
    backend: str, call: Callable[..., Any], leaves: Sequence[Any], check: Callable[[Any], None]
) -> None:
    """Compiled code passes the check; compiled with fullgraph it passes too, or it is refused."""
    with fresh():
        check(torch.compile(call, backend=backend)(*leaves))
    with fresh(), suppress(torch._dynamo.exc.Unsupported):
        check(torch.compile(call, backend=backend, fullgraph=True)(*leaves))
