"""The device of a call's tensors, and the random numbers of all devices."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any

import torch

# Of these there is one: their generator has no number.
_SINGLE = ("mps",)


def device_of(values: Iterable[Any]) -> torch.device:
    """The device of the tensors, which are on one."""
    return next((x.device for x in values if isinstance(x, torch.Tensor)), torch.device("cpu"))


def current(device: torch.device) -> AbstractContextManager[object]:
    """A context in which a device is the current one of this thread."""
    module: Any = getattr(torch, device.type, None)
    if device.index is None or not hasattr(module, "device"):
        return nullcontext()
    found: AbstractContextManager[object] = module.device(device.index)
    return found


def generators(devices: Iterable[str]) -> Iterator[tuple[Callable[[], Any], Callable[[Any], object]]]:
    """How the states of torch's random numbers on the CPU and on other devices are read, and set back."""
    yield torch.get_rng_state, torch.set_rng_state
    for device in devices:
        module: Any = getattr(torch, device, None)
        if not hasattr(module, "get_rng_state") or not getattr(module, "is_initialized", lambda: True)():
            continue
        if device in _SINGLE:
            yield module.get_rng_state, module.set_rng_state
            continue
        for index in range(module.device_count()):
            one = torch.device(device, index)
            yield partial(module.get_rng_state, one), partial(module.set_rng_state, device=one)
