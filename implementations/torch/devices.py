"""The devices that torch has here, that of a call's tensors, and the random numbers of all."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any

import torch

# Devices that torch itself knows; any other is registered by a package, as PrivateUse1.
_ACCELERATORS = ("cuda", "xpu", "mps", "mtia", "hpu")
# Of these there is one: their generator has no number.
_SINGLE = ("mps",)


def registered() -> str:
    """The name of the device that a package has registered, if one has."""
    named = getattr(getattr(torch, "_C", None), "_get_privateuse1_backend_name", None)
    return str(named()) if named is not None else "privateuseone"


def is_available(device: str) -> bool:
    """Whether this machine has that device, as its module in torch says, or a tensor that can be made there."""
    module = getattr(torch, device, None)
    if module is None:
        return False
    if hasattr(module, "is_available"):
        return bool(module.is_available())
    try:
        torch.empty(0, device=device)
    except Exception:  # noqa: BLE001 - as the package of the device likes
        return False
    return True


def accelerators() -> tuple[str, ...]:
    """The devices beside the CPU that can be used here."""
    return tuple(filter(is_available, dict.fromkeys((*_ACCELERATORS, registered()))))


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


def generators() -> Iterator[tuple[Callable[[], Any], Callable[[Any], object]]]:
    """How the states of torch's random numbers on the CPU and on other devices are read, and set back."""
    yield torch.get_rng_state, torch.set_rng_state
    for device in accelerators():
        module: Any = getattr(torch, device, None)
        if not hasattr(module, "get_rng_state") or not getattr(module, "is_initialized", lambda: True)():
            continue
        if device in _SINGLE:
            yield module.get_rng_state, module.set_rng_state
            continue
        for index in range(module.device_count()):
            one = torch.device(device, index)
            yield partial(module.get_rng_state, one), partial(module.set_rng_state, device=one)
