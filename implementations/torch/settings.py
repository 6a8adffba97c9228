"""The settings of a process that runs torch, its random numbers, and what new memory holds."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from typing import Any, TypeVar
from unittest import mock

import numpy as np
import torch
import torch._functorch.eager_transforms
import torch.utils.checkpoint
import torch.utils.deterministic
from torch.autograd import forward_ad

from autograd_conformance.implementations.importing.missing import Missing, Placeholder
from autograd_conformance.implementations.protocol import RandomState, Setting
from autograd_conformance.implementations.torch import devices

_Read = TypeVar("_Read", Setting, RandomState)


def _attribute(what: str, owner: Any, name: str) -> Setting:
    return Setting(what, lambda: getattr(owner, name), lambda value: setattr(owner, name, value))


def _leave_levels(level: int) -> None:
    """Leave the levels of forward mode above this one."""
    while forward_ad._current_level > level:
        forward_ad.exit_dual_level()


def _autocast(device: str) -> tuple[Setting, Setting]:
    return (
        Setting(
            f"autocast on {device}",
            lambda: torch.is_autocast_enabled(device),
            lambda on: torch.set_autocast_enabled(device, on),
        ),
        Setting(
            f"dtype of autocast on {device}",
            lambda: torch.get_autocast_dtype(device),
            lambda dtype: torch.set_autocast_dtype(device, dtype),
        ),
    )


def _set_device(device: Any) -> None:
    torch.set_default_device(None if device == torch.device("cpu") else device)


def _precision() -> str:
    """The precision of float32 products; "" if it was set by another interface, with which this one does not mix."""
    try:
        return torch.get_float32_matmul_precision()
    except RuntimeError:
        return ""


def _set_precision(name: str) -> None:
    if name:
        torch.set_float32_matmul_precision(name)


_DETERMINISM = Setting(
    "deterministic algorithms", torch.get_deterministic_debug_mode, torch.set_deterministic_debug_mode
)
_FILLING = _attribute("filling of uninitialized memory", torch.utils.deterministic, "fill_uninitialized_memory")

# What blocks and transforms set while they run, where this release has it: private, but what they leave fails all that
# follows.
_LAYERS = torch._C._functorch
_OF_BLOCKS = (
    *(
        _attribute(what, owner, name)
        for what, owner, name in (
            ("early stop of checkpoints", torch.utils.checkpoint, "_enable_checkpoint_early_stop"),
            ("debug of checkpoints", torch.utils.checkpoint, "_checkpoint_debug_enabled"),
            ("nesting of forward mode", torch._functorch.eager_transforms, "JVP_NESTING"),
            ("mutation of saved tensors", torch.autograd.graph, "_allow_mutation_on_saved_tensors_enabled"),
        )
        if hasattr(owner, name)
    ),
    *(
        Setting("number of active transforms", depth, _LAYERS.pop_dynamic_layer_stack_and_undo_to_depth)
        for depth in (getattr(_LAYERS, "get_dynamic_layer_stack_depth", None),)
        if depth and hasattr(_LAYERS, "pop_dynamic_layer_stack_and_undo_to_depth")
    ),
    Setting("level of forward mode", lambda: forward_ad._current_level, _leave_levels),
)

# The smallest number of double precision; it becomes zero in a product if small numbers are flushed.
_TINY = 5e-324


SETTINGS = (
    Setting("grad mode", torch.is_grad_enabled, torch.set_grad_enabled),
    Setting("default dtype", torch.get_default_dtype, torch.set_default_dtype),
    Setting("default device", torch.get_default_device, _set_device),
    *_OF_BLOCKS,
    *_autocast("cpu"),
    *_autocast("cuda"),
    Setting("cache of autocast", torch.is_autocast_cache_enabled, torch.set_autocast_cache_enabled),
    Setting(
        "anomaly mode",
        lambda: (torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled()),
        lambda mode: torch.set_anomaly_enabled(*mode),
    ),
    _DETERMINISM,
    _FILLING,
    Setting("number of threads", torch.get_num_threads, torch.set_num_threads),
    Setting("precision of float32 products", _precision, _set_precision),
    Setting("flushing of small numbers to zero", lambda: _TINY * 1.0 == 0.0, torch.set_flush_denormal),
    _attribute("torch.backends.cudnn.benchmark", torch.backends.cudnn, "benchmark"),
    _attribute("torch.backends.cudnn.deterministic", torch.backends.cudnn, "deterministic"),
    Setting("error handling of NumPy", np.geterr, lambda handling: np.seterr(**handling)),
)  # fmt: skip


def _numpy_state() -> Any:
    return [part.tobytes() if isinstance(part, np.ndarray) else part for part in np.random.get_state()]


def _torch_state() -> Any:
    """The states of all devices: a call on one may draw there."""
    return [get().numpy().tobytes() for get, _ in devices.generators()]


def _seed_torch(seed: int) -> None:
    """Seed torch's random numbers.

    For each device that is absent, `torch.manual_seed` formats a stack, and keeps it: a millisecond a call.
    """
    if devices.accelerators():
        torch.manual_seed(seed)
    else:
        torch.default_generator.manual_seed(seed)


def readable(settings: Iterable[_Read]) -> tuple[_Read, ...]:
    """Those that can be read; a package that stands for torch may lack some."""
    found = []
    for setting in settings:
        with suppress(AttributeError, Missing):
            if not isinstance(setting.get(), Placeholder):
                found.append(setting)
    return tuple(found)


RANDOM_STATES = (
    RandomState("torch's random numbers", _torch_state, _seed_torch),
    RandomState("NumPy's random numbers", _numpy_state, np.random.seed),
    RandomState("Python's random numbers", random.getstate, random.seed),
)


def reseed(seed: int = 0) -> None:
    """Seed all random numbers."""
    for state in readable(RANDOM_STATES):
        state.seed(seed)


# What allocates memory and writes nothing into it.
_ALLOCATING = (
    (torch, "empty"), (torch, "empty_like"), (torch, "empty_permuted"), (torch, "empty_strided"),
    (torch.Tensor, "new_empty"), (torch.Tensor, "new_empty_strided"),
)  # fmt: skip


def _zeroing(allocate: Callable[..., Any]) -> Callable[..., Any]:
    """The same function, which fills what it returns with zeros."""

    def allocated(*args: Any, **kwargs: Any) -> Any:
        found = allocate(*args, **kwargs)
        with torch.no_grad():
            found.zero_()
        return found

    return allocated


@contextmanager
def _zeroed() -> Iterator[None]:
    """A context in which new tensors of Python are filled with zeros.

    A mode of torch would not reach backward, which the engine calls, and one of dispatch imports the compiler.
    """
    with ExitStack() as stack:
        for owner, name in _ALLOCATING:
            stack.enter_context(mock.patch.object(owner, name, _zeroing(getattr(owner, name))))
        yield


@contextmanager
def new_memory(fill: bool) -> Iterator[None]:
    """Within this context torch fills the memory that it allocates with NaN and the largest integers, or with zeros.

    Either way its algorithms are the deterministic ones, so that nothing else differs.
    """
    before = [(setting, setting.get()) for setting in (_DETERMINISM, _FILLING)]
    with warnings.catch_warnings(), nullcontext() if fill else _zeroed():
        # There is not a deterministic algorithm for each operation.
        warnings.simplefilter("ignore")
        _DETERMINISM.set("warn")
        _FILLING.set(fill)
        try:
            yield
        finally:
            for setting, value in before:
                setting.set(value)
