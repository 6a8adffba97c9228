"""Faults of anomaly mode, checkpointing, threads and autocast."""

from __future__ import annotations

import threading
from contextlib import contextmanager, nullcontext
from unittest.mock import patch

import torch
import torch.utils.checkpoint
from torch.utils.checkpoint import CheckpointError

from autograd_conformance.selftests import plants
from autograd_conformance.selftests.planted_clauses.definitions import Fix
from autograd_conformance.selftests.planting import fault

# --- anomaly mode ----------------------------------------------------------------------------------------------------


def _overlooks(which):
    """In anomaly mode NaN in some gradients is not seen."""

    def change(_, found):
        seen = torch.is_anomaly_enabled() and torch.is_anomaly_check_nan_enabled()
        return tuple(g.nan_to_num() if seen and g is not None and which(g) else g for g in found)

    return plants.gradients(change)


def _check_nan_stays(mode, *_):
    torch.set_anomaly_enabled(mode.prev, torch.is_anomaly_check_nan_enabled())


def _traced(change):
    """The metadata of a new node is changed so."""
    return plants.noting_calls(lambda node, *_: change(node.metadata))


def _traces_the_last_call():
    last = []

    def change(metadata):
        if "traceback_" in metadata:
            last[:] = metadata["traceback_"]
            metadata["traceback_"] = last

    return _traced(change)()


# --- checkpointing ---------------------------------------------------------------------------------------------------


def _checkpoint(method):
    return plants.wrapped(torch.utils.checkpoint, "checkpoint", method)


def _recomputes_twice(original, f, *args, **options):
    runs = []

    def again(*given):
        runs.append(given)
        if len(runs) > 1:
            with torch.no_grad():
                f(*given)
        return f(*given)

    return original(again, *args, **options)


def _must_be_given(original, *args, **options):
    if "use_reentrant" not in options:
        raise TypeError("use_reentrant must be given")
    return original(*args, **options)


def _determinism_check(change):
    """checkpoint with another determinism_check."""

    def checkpoint(original, *args, determinism_check="default", **options):
        return original(*args, determinism_check=change(determinism_check), **options)

    return _checkpoint(checkpoint)


def _unchecked(original, *args, **options):
    """checkpoint without a check of known names, unless it is reentrant."""
    known = options.get("determinism_check", "default") == "default" and not options["use_reentrant"]
    return original(*args, **{**options, **({"determinism_check": "none"} if known else {})})


def _compares_shapes():
    known = torch.utils.checkpoint._allowed_determinism_checks_to_fns
    return patch.dict(known, {"default": lambda tensor: {"shape": tensor.shape}})


@plants.anew
def _second_read(change):
    """A further read of checkpointed tensors gives ``change`` of each tensor of the first read."""
    first = {}

    def read(original, ctx):
        try:
            first[ctx] = original(ctx)
        except CheckpointError:
            if ctx not in first:
                raise
            return tuple(change(tensor) for tensor in first[ctx])
        return first[ctx]

    return plants.ctx_property("saved_tensors", read)()


_ZEROS_FOR_REENTRANT = plants.rescued(
    lambda _, inputs, *__: tuple(torch.zeros_like(x) for x in inputs), says="use_reentrant"
)

# --- threads ---------------------------------------------------------------------------------------------------------


def _on_main_thread(*_):
    return threading.current_thread() is threading.main_thread()


def _on_a_thread_of_its_own(original, *args, **options):
    found = []

    def run():
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


def _shares_saved_tensors():
    shared = {}

    def mixed(_, saved):
        return saved if _on_main_thread() else shared.setdefault(str([(t.shape, t.dtype) for t in saved]), saved)

    return plants.ctx_attribute("saved_tensors", mixed)()


def _elsewhere(**changed):
    """``autograd.grad`` with other options in other threads than the main one."""
    method = plants.where(lambda *_: not _on_main_thread(), plants.options(**changed))
    return plants.wrapped(torch.autograd, "grad", method)


# --- autocast --------------------------------------------------------------------------------------------------------


def _decorator(name, wrap):
    """``torch.amp.name(device_type=d, **options)`` decorates f as ``wrap(original, f, d, **options)``."""

    def custom(original, method=None, *, device_type, **options):
        if method is None:
            return lambda f: wrap(original, f, device_type, **options)
        return wrap(original, method, device_type, **options)

    return plants.wrapped(torch.amp, name, custom)


def _forward_as(method):
    """What custom_fwd makes of f is ``method(decorate, f, device, cast_inputs, ctx, *args)``."""

    def wrap(original, f, device, *, cast_inputs=None):
        def decorate(g):
            return original(g, device_type=device, cast_inputs=cast_inputs)

        return lambda ctx, *args: method(decorate, f, device, cast_inputs, ctx, *args)

    return _decorator("custom_fwd", wrap)


def _leaves_autocast_off(decorate, f, device, cast_inputs, ctx, *args):
    output = decorate(f)(ctx, *args)
    if cast_inputs is not None:
        torch.set_autocast_enabled(device, False)
    return output


def _casts_what_is_tracked(decorate, f, device, cast_inputs, ctx, *args):
    def uncast(ctx, *cast):
        flags = zip(cast, args, ctx.needs_input_grad, strict=True)
        return f(ctx, *(new if need else old for new, old, need in flags))

    return decorate(uncast)(ctx, *args)


def _casts_first(when, integers=False):
    """custom_fwd with cast_inputs casts the arguments itself ``when`` the device's state is such."""

    def forward(decorate, f, device, cast_inputs, ctx, *args):
        def cast(a):
            return a.to(cast_inputs) if integers or a.is_floating_point() else a

        return decorate(f)(ctx, *(plants.of_tensors(cast, args) if cast_inputs and when(device) else args))

    return _forward_as(forward)


def _stays_on(decorate, f, device, cast_inputs, ctx, *args):
    return decorate(torch.autocast(device, **_state(device))(f))(ctx, *args)


def _state(device):
    return {"enabled": torch.is_autocast_enabled(device), "dtype": torch.get_autocast_dtype(device)}


@plants.anew
def _backward_under(state):
    """Every backward runs under autocast in a state that is chosen when its call was recorded."""
    states = {}

    def note(node, _, __, outputs):
        states[node] = state(outputs[0].device.type)

    def backward(original, ctx, *cotangents):
        with torch.autocast(cotangents[0].device.type, **states[ctx]):
            return original(ctx, *cotangents)

    return plants.all_of(plants.noting_calls(note), plants.around_backward(backward))


@contextmanager
def _bare(forward=lambda f: f):
    """The decorators can do without a device_type; custom_fwd decorates ``forward(f)``."""

    def custom_fwd(original, method=None, *, device_type="cpu", **options):
        return original(None if method is None else forward(method), device_type=device_type, **options)

    def custom_bwd(original, method=None, *, device_type="cpu"):
        return original(method, device_type=device_type)

    decorators = (
        plants.wrapped(torch.amp, "custom_fwd", custom_fwd),
        plants.wrapped(torch.amp, "custom_bwd", custom_bwd),
    )
    with plants.all_of(*decorators):
        yield


def _no_context(*_, **__):
    return nullcontext()


FAULTS = (
    fault(
        "ANOM-01",
        plants.wrapped(
            torch, "set_anomaly_enabled", lambda original, mode, check_nan=True: original(mode, check_nan and not mode)
        ),
    ),
    fault("ANOM-01: the traceback is that of the last call", _traces_the_last_call, neighbours=("ANOM-02",)),
    fault("ANOM-01: NaN in half precision passes", _overlooks(lambda g: g.dtype in (torch.float16, torch.bfloat16))),
    fault("ANOM-01: NaN in a scalar gradient passes", _overlooks(lambda g: not g.dim())),
    fault(
        "ANOM-01: check_nan of a nested mode stays",
        plants.put(torch.autograd.detect_anomaly, "__exit__", _check_nan_stays),
    ),
    fault("ANOM-02", _traced(lambda metadata: metadata.clear()), neighbours=("ANOM-01",)),
    fault(
        "ANOM-02: there is a traceback without anomaly mode too",
        _traced(lambda metadata: metadata.setdefault("traceback_", ["somewhere"])),
    ),
    fault(
        "CKPT-01",
        _checkpoint(lambda _, f, *args, **__: f(*args)),
        neighbours=plants.numbers("CKPT", 2, 3, 5, 6, 7, 9, 10, 11, 12, 13, 15, 16, 17, 18, 19),
    ),
    fault(
        "CKPT-01: forward is recomputed twice",
        _checkpoint(_recomputes_twice),
        neighbours=plants.numbers("CKPT", 5, 6, 10, 11, 12, 13, 15, 17, 19),
    ),
    fault("CKPT-02", _second_read(torch.zeros_like)),
    fault("CKPT-02: tensors can be read again", _second_read(lambda tensor: tensor)),
    fault("CKPT-03", plants.wrapped(torch.autograd, "grad", _ZEROS_FOR_REENTRANT)),
    fault(
        "CKPT-03: backward ignores inputs",
        plants.wrapped(
            torch.autograd, "backward", lambda original, *args, inputs=None, **options: original(*args, **options)
        ),
    ),
    fault(
        "CKPT-04",
        _checkpoint(
            lambda original, *args, use_reentrant=False, **options: original(
                *args, use_reentrant=use_reentrant, **options
            )
        ),
    ),
    fault("CKPT-05", _checkpoint(plants.options(preserve_rng_state=False)), "random numbers of the recomputation"),
    fault(
        "CKPT-05: the pass leaves the generator in the state of forward",
        plants.put(torch.random, "fork_rng", _no_context),
        "state of the generator after backward",
    ),
    fault("CKPT-06", _checkpoint(plants.options(preserve_rng_state=True))),
    fault("CKPT-07", _checkpoint(_unchecked), neighbours=("CKPT-13",)),
    fault("CKPT-07: shapes alone are compared", _compares_shapes, neighbours=("CKPT-13",)),
    fault("CKPT-08", _determinism_check(lambda check: "default" if check == "none" else check)),
    fault("CKPT-09", _determinism_check(lambda check: check if check == "none" else "default")),
    fault("CKPT-10", _checkpoint(plants.options(early_stop=True)), "reached the end"),
    fault("CKPT-10: the recomputation never stops early", _checkpoint(plants.options(early_stop=False))),
    fault(
        "CKPT-10: set_checkpoint_early_stop does nothing",
        plants.put(torch.utils.checkpoint, "set_checkpoint_early_stop", _no_context),
    ),
    fault("THREAD-01", plants.wrapped(torch.autograd, "grad", _on_a_thread_of_its_own)),
    fault("THREAD-01: threads share saved tensors of one form", _shares_saved_tensors),
    fault("THREAD-02", _elsewhere(retain_graph=True)),
    fault("THREAD-02: retain_graph holds for the main thread only", _elsewhere(retain_graph=False)),
    fault(
        "AMP-01",
        _decorator("custom_bwd", lambda original, f, d: original(torch.autocast(d, enabled=False)(f), device_type=d)),
    ),
    fault(
        "AMP-01: custom_bwd runs backward in the state of the pass",
        _decorator("custom_bwd", lambda _, f, __: f),
        neighbours=("AMP-03",),
    ),
    fault("AMP-02", _backward_under(_state)),
    fault(
        "AMP-02: backward runs with autocast on in any case",
        _backward_under(lambda _: {"enabled": True, "dtype": torch.bfloat16}),
    ),
    fault("AMP-03", _casts_first(lambda _: True)),
    fault("AMP-03: cast_inputs casts integers too", _casts_first(torch.is_autocast_enabled, integers=True)),
    fault("AMP-03: cast_inputs leaves autocast on", _forward_as(_stays_on)),
    fault("AMP-03: autocast is off after the call", _forward_as(_leaves_autocast_off), "after the call"),
    fault("AMP-03: tensors that require no grad are not cast", _forward_as(_casts_what_is_tracked)),
    fault("AMP-04", lambda: _bare(torch.autocast("cpu", enabled=False)), "states of autocast"),
)

FIXES = (
    Fix("CKPT-04", _checkpoint(_must_be_given)),
    Fix("AMP-03", _casts_first(torch.is_autocast_enabled), variant="float64"),
    Fix("AMP-04", _bare),
)
