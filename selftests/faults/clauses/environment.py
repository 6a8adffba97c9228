"""Faults of anomaly mode, checkpointing, threads and autocast."""

from __future__ import annotations

import threading
from contextlib import nullcontext
from functools import partial

import torch
import torch.utils.checkpoint
from torch.utils.checkpoint import CheckpointError

from autograd_conformance.selftests.faults import plants
from autograd_conformance.selftests.faults.clauses.definitions import Fix
from autograd_conformance.selftests.faults.clauses.editing import edit
from autograd_conformance.selftests.faults.planting import fault

# --- anomaly mode ----------------------------------------------------------------------------------------------------


def _overlooks(which):
    """In anomaly mode NaN in some gradients is not seen."""

    def change(_, found):
        seen = torch.is_anomaly_enabled() and torch.is_anomaly_check_nan_enabled()
        return tuple(g.nan_to_num() if seen and g is not None and which(g) else g for g in found)

    return plants.gradients(change)


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


def _decorating(decorated):
    """Without a function checkpoint gives a decorator: of ``f`` it makes ``decorated(checkpoint, f, its options)``."""

    def checkpoint(original, *args, **options):
        return original(*args, **options) if args else lambda f: decorated(original, f, options)

    return checkpoint


def _must_be_given(original, *args, **options):
    if "use_reentrant" not in options:
        raise TypeError("use_reentrant must be given")
    return original(*args, **options)


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


def _leaves_autocast_off(original, method=None, *, device_type, cast_inputs=None):
    """custom_fwd, which switches autocast off after a call for which it cast the arguments."""
    if method is None:
        return partial(torch.amp.custom_fwd, device_type=device_type, cast_inputs=cast_inputs)
    inner = original(method, device_type=device_type, cast_inputs=cast_inputs)

    def forward(*args):
        output = inner(*args)
        if cast_inputs is not None:
            torch.set_autocast_enabled(device_type, False)
        return output

    return forward


def _bare(forward=lambda f: f):
    """The decorators can do without a device_type; custom_fwd decorates ``forward(f)``."""

    def custom_fwd(original, method=None, *, device_type="cpu", **options):
        return original(None if method is None else forward(method), device_type=device_type, **options)

    def custom_bwd(original, method=None, *, device_type="cpu"):
        return original(method, device_type=device_type)

    return plants.all_of(
        plants.wrapped(torch.amp, "custom_fwd", custom_fwd), plants.wrapped(torch.amp, "custom_bwd", custom_bwd)
    )


def _no_context(*_, **__):
    return nullcontext()


def _cast_double(product, a, b):
    """A product that casts double precision within autocast."""
    if torch.is_autocast_enabled("cpu") and a.dtype is torch.float64:
        return product(*(x.to(torch.get_autocast_dtype("cpu")) for x in (a, b)))
    return product(a, b)


@plants.anew
def _cast_once():
    known = []

    def product(original, a, b):
        if torch.is_autocast_cache_enabled() and not torch.is_grad_enabled():
            known.append(b)
        return original(a, b.detach() if torch.is_autocast_enabled("cpu") and plants.among(known, b) else b)

    return plants.wrapped(torch.Tensor, "__matmul__", product)()


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
    fault("ANOM-02", _traced(lambda metadata: metadata.clear()), neighbours=("ANOM-01",)),
    fault(
        "ANOM-02: there is a traceback without anomaly mode too",
        _traced(lambda metadata: metadata.setdefault("traceback_", ["somewhere"])),
    ),
    fault(
        "CKPT-01",
        _checkpoint(lambda _, f, *args, **__: f(*args)),
        neighbours=plants.numbers("CKPT", 2, 3, 5, 6, 7, 9, 10, 11, 12, 13, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 26),
    ),
    fault("CKPT-02", _second_read(torch.zeros_like), neighbours=("CKPT-20",)),
    fault("CKPT-02: tensors can be read again", _second_read(lambda tensor: tensor), neighbours=("CKPT-20",)),
    fault("CKPT-26", _checkpoint(_decorating(lambda checkpoint, f, options: f)), "runs of the Function"),
    fault(
        "CKPT-26: a decorator drops its options",
        _checkpoint(_decorating(lambda checkpoint, f, _: partial(checkpoint, f, use_reentrant=False))),
    ),
    fault(
        "CKPT-03",
        plants.wrapped(torch.autograd, "grad", _ZEROS_FOR_REENTRANT),
        neighbours=("CKPT-26",),
    ),
    fault(
        "CKPT-04",
        _checkpoint(lambda original, *args, **options: original(*args, **{"use_reentrant": False, **options})),
    ),
    fault("CKPT-05", _checkpoint(plants.options(preserve_rng_state=False)), "random numbers of the recomputation"),
    fault(
        "CKPT-05: the pass leaves the generator in the state of forward",
        plants.put(torch.random, "fork_rng", _no_context),
        "state of the generator after backward",
    ),
    fault("CKPT-06", _checkpoint(plants.options(preserve_rng_state=True))),
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
    fault("AMP-02", _backward_under(_state)),
    fault(
        "AMP-02: backward runs with autocast on in any case",
        _backward_under(lambda _: {"enabled": True, "dtype": torch.bfloat16}),
    ),
    fault(
        "AMP-03: autocast is off after the call",
        plants.wrapped(torch.amp, "custom_fwd", _leaves_autocast_off),
        "after the call",
    ),
    fault(
        "AMP-06: double precision is cast",
        plants.wrapped(torch.Tensor, "__matmul__", _cast_double),
        "product",
    ),
    fault("AMP-06: what was cast without grad gets no gradient in its region", _cast_once(), "require grad"),
    fault("AMP-04", lambda: _bare(torch.autocast("cpu", enabled=False)), "states of autocast"),
)

FIXES = (
    Fix("CKPT-04", _checkpoint(_must_be_given)),
    Fix(
        "AMP-03", edit("torch.amp.autocast_mode:_cast", "and (value.dtype is not torch.float64)", ""), variant="float64"
    ),
    Fix("AMP-04", _bare),
)
