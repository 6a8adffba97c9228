"""Faults of anomaly mode, checkpointing, threads and autocast."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any
from unittest.mock import patch

import torch
import torch.utils.checkpoint
from torch.autograd.function import BackwardCFunction
from torch.utils.checkpoint import CheckpointError

from autograd_conformance.selftests.planted_clauses.definitions import Fix
from autograd_conformance.selftests.planted_clauses.intercept import (
    around_apply,
    around_backward,
    ctx_attribute,
    replaced,
)
from autograd_conformance.selftests.planting import Fault


def _lets_nan_pass(original: Any) -> Any:
    return lambda mode, check_nan=True: original(mode, check_nan and not mode)


def _overlooks(which: Callable[[Any], bool]) -> AbstractContextManager[Any]:
    """In anomaly mode NaN in some gradients is not seen."""

    def backward(original: Any, ctx: Any, *cotangents: Any) -> Any:
        found = original(ctx, *cotangents)
        seen = torch.is_anomaly_enabled() and torch.is_anomaly_check_nan_enabled()
        return tuple(g.nan_to_num() if seen and g is not None and which(g) else g for g in found)

    return around_backward(backward)


def _check_nan_stays(mode: Any, *_: Any) -> None:
    torch.set_anomaly_enabled(mode.prev, torch.is_anomaly_check_nan_enabled())


def _leaves_autocast_off(original: Any, f: Any, device: str, *, cast_inputs: Any = None) -> Any:
    inner = original(f, device_type=device, cast_inputs=cast_inputs)

    def forward(ctx: Any, *args: Any) -> Any:
        output = inner(ctx, *args)
        if cast_inputs is not None:
            torch.set_autocast_enabled(device, False)
        return output

    return forward


def _casts_what_is_tracked(original: Any, f: Any, device: str, *, cast_inputs: Any = None) -> Any:
    def forward(ctx: Any, *args: Any) -> Any:
        def uncast(ctx: Any, *cast: Any) -> Any:
            flags = zip(cast, args, ctx.needs_input_grad, strict=True)
            return f(ctx, *(new if need else old for new, old, need in flags))

        return original(uncast, device_type=device, cast_inputs=cast_inputs)(ctx, *args)

    return forward


def _traced(change: Callable[[dict[str, Any]], Any]) -> AbstractContextManager[Any]:
    """The metadata of a new node is changed so."""

    def apply(original: Any, cls: Any, *args: Any) -> Any:
        output = original(cls, *args)
        change(output.grad_fn.metadata)
        return output

    return around_apply(apply)


@contextmanager
def _traces_the_last_call() -> Iterator[None]:
    last: list[str] = []

    def change(metadata: dict[str, Any]) -> None:
        if "traceback_" in metadata:
            last[:] = metadata["traceback_"]
            metadata["traceback_"] = last

    with _traced(change):
        yield


def _checkpoint(change: Callable[..., Any]) -> AbstractContextManager[Any]:
    return replaced(torch.utils.checkpoint, "checkpoint", lambda original: functools.partial(change, original))


def _as_it_is(_: Any, f: Any, *args: Any, **__: Any) -> Any:
    return f(*args)


def _recomputes_twice(original: Any, f: Any, *args: Any, **options: Any) -> Any:
    runs: list[Any] = []

    def again(*given: Any) -> Any:
        runs.append(given)
        if len(runs) > 1:
            with torch.no_grad():
                f(*given)
        return f(*given)

    return original(again, *args, **options)


def _must_be_given(original: Any, *args: Any, **options: Any) -> Any:
    if "use_reentrant" not in options:
        raise TypeError("use_reentrant must be given")
    return original(*args, **options)


def _always(**changed: Any) -> Callable[..., Any]:
    """checkpoint with these options, whatever the caller asks for."""
    return lambda original, *args, **options: original(*args, **{**options, **changed})


def _takes_any_check(original: Any, *args: Any, determinism_check: str = "default", **options: Any) -> Any:
    known = determinism_check if determinism_check == "none" else "default"
    return original(*args, determinism_check=known, **options)


def _unchecked(original: Any, *args: Any, **options: Any) -> Any:
    """checkpoint without a check of known names, unless it is reentrant."""
    known = options.get("determinism_check", "default") == "default" and not options["use_reentrant"]
    return original(*args, **{**options, **({"determinism_check": "none"} if known else {})})


def _compares(original: Any, *args: Any, determinism_check: str = "default", **options: Any) -> Any:
    known = "default" if determinism_check == "none" else determinism_check
    return original(*args, determinism_check=known, **options)


def _compares_shapes() -> AbstractContextManager[Any]:
    return patch.dict(
        torch.utils.checkpoint._allowed_determinism_checks_to_fns, {"default": lambda tensor: {"shape": tensor.shape}}
    )


def _never_restores(_: Any) -> Callable[..., Any]:
    return lambda *_args, **_options: nullcontext()


def _takes_for_granted(original: Any, *args: Any, use_reentrant: bool = False, **options: Any) -> Any:
    return original(*args, use_reentrant=use_reentrant, **options)


@contextmanager
def _second_read(change: Callable[[Any], Any]) -> Iterator[None]:
    """A further read of checkpointed tensors gives ``change`` of each tensor of the first read."""
    inherited = next(vars(kind)["saved_tensors"] for kind in BackwardCFunction.__mro__ if "saved_tensors" in vars(kind))
    first: dict[Any, Any] = {}

    def read(ctx: Any) -> Any:
        try:
            first[ctx] = inherited.__get__(ctx, type(ctx))
        except CheckpointError:
            if ctx not in first:
                raise
            return tuple(change(tensor) for tensor in first[ctx])
        return first[ctx]

    with patch.object(BackwardCFunction, "saved_tensors", property(read), create=True):
        yield


def _gives_zeros(original: Any) -> Any:
    def grad(outputs: Any, inputs: Any, *args: Any, **options: Any) -> Any:
        try:
            return original(outputs, inputs, *args, **options)
        except RuntimeError as raised:
            if "use_reentrant" not in str(raised):
                raise
            return tuple(torch.zeros_like(x) for x in inputs)

    return grad


def _ignores_inputs(original: Any) -> Any:
    return lambda *args, inputs=None, **options: original(*args, **options)


def _on_a_thread_of_its_own(original: Any) -> Any:
    def grad(*args: Any, **options: Any) -> Any:
        found: list[Any] = []

        def run() -> None:
            try:
                found.append(original(*args, **options))
            except Exception as raised:  # noqa: BLE001 - is raised by the caller
                found.append(raised)

        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
        if isinstance(found[0], Exception):
            raise found[0]
        return found[0]

    return grad


@contextmanager
def _shares_saved_tensors() -> Iterator[None]:
    shared: dict[Any, Any] = {}

    def mixed(_: Any, saved: Any) -> Any:
        here = threading.current_thread() is threading.main_thread()
        return saved if here else shared.setdefault([(t.shape, t.dtype) for t in saved].__repr__(), saved)

    with ctx_attribute("saved_tensors", mixed):
        yield


def _elsewhere(**changed: Any) -> Callable[[Any], Any]:
    """``autograd.grad`` with other options in other threads than the main one."""

    def change(original: Any) -> Any:
        def grad(*args: Any, **options: Any) -> Any:
            main = threading.current_thread() is threading.main_thread()
            return original(*args, **(options if main else {**options, **changed}))

        return grad

    return change


def _decorator(name: str, wrap: Callable[..., Any]) -> AbstractContextManager[Any]:
    """``torch.amp.name(device_type=d, **options)`` decorates f as ``wrap(original, f, d, **options)``."""

    def change(original: Any) -> Any:
        def custom(method: Any = None, *, device_type: str, **options: Any) -> Any:
            if method is None:
                return lambda f: wrap(original, f, device_type, **options)
            return wrap(original, method, device_type, **options)

        return custom

    return replaced(torch.amp, name, change)


def _off(original: Any, f: Any, device: str, **options: Any) -> Any:
    return original(torch.autocast(device, enabled=False)(f), device_type=device, **options)


def _plain(_: Any, f: Any, device: str) -> Any:
    return f


def _to(args: Any, dtype: Any, *, integers: bool = False) -> list[Any]:
    return [a.to(dtype) if isinstance(a, torch.Tensor) and (integers or a.is_floating_point()) else a for a in args]


def _casts_first(when: Callable[[str], bool], **how: Any) -> Callable[..., Any]:
    """custom_fwd with cast_inputs casts the arguments itself ``when`` the device's state is such."""

    def wrap(original: Any, f: Any, device: str, *, cast_inputs: Any = None) -> Any:
        inner = original(f, device_type=device, cast_inputs=cast_inputs)

        def forward(ctx: Any, *args: Any) -> Any:
            return inner(ctx, *(_to(args, cast_inputs, **how) if cast_inputs and when(device) else args))

        return forward

    return wrap


def _stays_on(original: Any, f: Any, device: str, *, cast_inputs: Any = None) -> Any:
    def forward(ctx: Any, *args: Any) -> Any:
        state = {"enabled": torch.is_autocast_enabled(device), "dtype": torch.get_autocast_dtype(device)}
        inner = torch.autocast(device, **state)(f)
        return original(inner, device_type=device, cast_inputs=cast_inputs)(ctx, *args)

    return forward


@contextmanager
def _backward_under(state: Callable[[Any], dict[str, Any]]) -> Iterator[None]:
    """Every backward runs under autocast in a state that is chosen when its call was recorded."""
    states: dict[Any, Any] = {}

    def apply(original: Any, cls: Any, *args: Any) -> Any:
        output = original(cls, *args)
        states[output.grad_fn] = state(output.device.type)
        return output

    def backward(original: Any, ctx: Any, *cotangents: Any) -> Any:
        with torch.autocast(cotangents[0].device.type, **states[ctx]):
            return original(ctx, *cotangents)

    with around_apply(apply), around_backward(backward):
        yield


def _of_forward(device: str) -> dict[str, Any]:
    return {"enabled": torch.is_autocast_enabled(device), "dtype": torch.get_autocast_dtype(device)}


# What makes the listed deviations hold.


@contextmanager
def _bare(forward: Callable[[Any], Any] = lambda f: f) -> Iterator[None]:
    def change(original: Any, name: str) -> Any:
        def custom(method: Any = None, *, device_type: str = "cpu", **options: Any) -> Any:
            inner = forward(method) if method is not None and name == "custom_fwd" else method
            return original(inner, device_type=device_type, **options)

        return custom

    with (
        replaced(torch.amp, "custom_fwd", lambda original: change(original, "custom_fwd")),
        replaced(torch.amp, "custom_bwd", lambda original: change(original, "custom_bwd")),
    ):
        yield


FAULTS = (
    Fault("ANOM-01", lambda: replaced(torch, "set_anomaly_enabled", _lets_nan_pass)),
    Fault(
        "ANOM-01",
        _traces_the_last_call,
        neighbours=("ANOM-02",),
        words="the traceback is that of the last call",
    ),
    Fault(
        "ANOM-01",
        lambda: _overlooks(lambda g: g.dtype in (torch.float16, torch.bfloat16)),
        words="NaN in half precision passes",
    ),
    Fault("ANOM-01", lambda: _overlooks(lambda g: not g.dim()), words="NaN in a scalar gradient passes"),
    Fault(
        "ANOM-01",
        lambda: patch.object(torch.autograd.detect_anomaly, "__exit__", _check_nan_stays),
        words="check_nan of a nested mode stays",
    ),
    Fault("ANOM-02", lambda: _traced(lambda metadata: metadata.clear()), neighbours=("ANOM-01",)),
    Fault(
        "ANOM-02",
        lambda: _traced(lambda metadata: metadata.setdefault("traceback_", ["somewhere"])),
        words="there is a traceback without anomaly mode too",
    ),
    Fault(
        "CKPT-01",
        lambda: _checkpoint(_as_it_is),
        neighbours=tuple(f"CKPT-{number:02}" for number in (2, 3, 5, 6, 7, 9, 10, 11, 12, 13, 15)),
    ),
    Fault(
        "CKPT-01",
        lambda: _checkpoint(_recomputes_twice),
        neighbours=("CKPT-05", "CKPT-06", "CKPT-10", "CKPT-11", "CKPT-12", "CKPT-13", "CKPT-15"),
        words="forward is recomputed twice",
    ),
    Fault("CKPT-02", lambda: _second_read(torch.zeros_like)),
    Fault("CKPT-02", lambda: _second_read(lambda tensor: tensor), words="tensors can be read again"),
    Fault("CKPT-03", lambda: replaced(torch.autograd, "grad", _gives_zeros)),
    Fault("CKPT-03", lambda: replaced(torch.autograd, "backward", _ignores_inputs), words="backward ignores inputs"),
    Fault("CKPT-04", lambda: _checkpoint(_takes_for_granted)),
    Fault(
        "CKPT-05",
        lambda: _checkpoint(_always(preserve_rng_state=False)),
        says=("random numbers of the recomputation",),
    ),
    Fault(
        "CKPT-05",
        lambda: replaced(torch.random, "fork_rng", _never_restores),
        says=("state of the generator after backward",),
        words="the pass leaves the generator in the state of forward",
    ),
    Fault("CKPT-06", lambda: _checkpoint(_always(preserve_rng_state=True))),
    Fault("CKPT-07", lambda: _checkpoint(_unchecked), neighbours=("CKPT-13",)),
    Fault("CKPT-07", _compares_shapes, neighbours=("CKPT-13",), words="shapes alone are compared"),
    Fault("CKPT-08", lambda: _checkpoint(_compares)),
    Fault("CKPT-09", lambda: _checkpoint(_takes_any_check)),
    Fault("CKPT-10", lambda: _checkpoint(_always(early_stop=True)), says=("reached the end",)),
    Fault("CKPT-10", lambda: _checkpoint(_always(early_stop=False)), words="the recomputation never stops early"),
    Fault(
        "CKPT-10",
        lambda: replaced(torch.utils.checkpoint, "set_checkpoint_early_stop", _never_restores),
        words="set_checkpoint_early_stop does nothing",
    ),
    Fault("THREAD-01", lambda: replaced(torch.autograd, "grad", _on_a_thread_of_its_own)),
    Fault("THREAD-01", _shares_saved_tensors, words="threads share saved tensors of one form"),
    Fault("THREAD-02", lambda: replaced(torch.autograd, "grad", _elsewhere(retain_graph=True))),
    Fault(
        "THREAD-02",
        lambda: replaced(torch.autograd, "grad", _elsewhere(retain_graph=False)),
        words="retain_graph holds for the main thread only",
    ),
    Fault("AMP-01", lambda: _decorator("custom_bwd", _off)),
    Fault(
        "AMP-01",
        lambda: _decorator("custom_bwd", _plain),
        neighbours=("AMP-03",),
        words="custom_bwd runs backward in the state of the pass",
    ),
    Fault("AMP-02", lambda: _backward_under(_of_forward)),
    Fault(
        "AMP-02",
        lambda: _backward_under(lambda _: {"enabled": True, "dtype": torch.bfloat16}),
        words="backward runs with autocast on in any case",
    ),
    Fault("AMP-03", lambda: _decorator("custom_fwd", _casts_first(lambda _: True))),
    Fault(
        "AMP-03",
        lambda: _decorator("custom_fwd", _casts_first(torch.is_autocast_enabled, integers=True)),
        words="cast_inputs casts integers too",
    ),
    Fault("AMP-03", lambda: _decorator("custom_fwd", _stays_on), words="cast_inputs leaves autocast on"),
    Fault(
        "AMP-03",
        lambda: _decorator("custom_fwd", _leaves_autocast_off),
        says=("after the call",),
        words="autocast is off after the call",
    ),
    Fault(
        "AMP-03",
        lambda: _decorator("custom_fwd", _casts_what_is_tracked),
        words="tensors that require no grad are not cast",
    ),
    Fault(
        "AMP-04",
        lambda: _bare(lambda forward: torch.autocast("cpu", enabled=False)(forward)),
        says=("states of autocast",),
    ),
)

FIXES = (
    Fix("CKPT-04", lambda: _checkpoint(_must_be_given)),
    Fix("AMP-03", lambda: _decorator("custom_fwd", _casts_first(torch.is_autocast_enabled)), variant="float64"),
    Fix("AMP-04", _bare),
)
