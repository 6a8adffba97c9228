"""Planted faults of modes that hold for one thread, and of those that are set by a call."""

from __future__ import annotations

import threading

import torch
from torch.autograd import graph

from autograd_conformance.selftests.faults import plants
from autograd_conformance.selftests.faults.clauses.editing import edit
from autograd_conformance.selftests.faults.planting import fault

_GRAD_MODE = "torch.autograd.grad_mode"


def _new_threads(mode):
    """A new thread runs in ``mode()``, which is called on the thread that starts it."""

    def start(original, thread):
        inherited, run = mode(), thread.run

        def within():
            with inherited:
                run()

        thread.run = within
        original(thread)

    return plants.wrapped(threading.Thread, "start", start)


def _autocast():
    return torch.autocast("cpu", dtype=torch.bfloat16, enabled=torch.is_autocast_enabled("cpu"))


def _hooks():
    found = torch._C._autograd._top_saved_tensors_default_hooks(True)
    return graph.saved_tensors_hooks(*(found or (lambda x: x, lambda x: x)))


def _factory(name):
    """Under no_grad what this function makes does not require grad."""

    def make(original, *args, requires_grad=False, **options):
        return original(*args, requires_grad=requires_grad and torch.is_grad_enabled(), **options)

    return plants.wrapped(torch, name, make)


FAULTS = (
    fault("MODE-06", _new_threads(lambda: torch.set_grad_enabled(torch.is_grad_enabled())), "the other thread"),
    fault(
        "MODE-06: inference mode holds for new threads",
        _new_threads(lambda: torch.inference_mode(torch.is_inference_mode_enabled())),
    ),
    fault("MODE-06: autocast holds for new threads", _new_threads(_autocast), "autocast"),
    fault("MODE-06: saved-tensor hooks hold for new threads", _new_threads(_hooks), "packed"),
    fault(
        "MODE-07",
        edit(f"{_GRAD_MODE}:set_grad_enabled.__init__", "torch._C._set_grad_enabled(mode)", "pass"),
        neighbours=("MODE-01", "MODE-05", "MODE-06"),
    ),
    fault(
        "MODE-07: grad mode can be switched off, and not on",
        edit(
            f"{_GRAD_MODE}:set_grad_enabled.__init__",
            "torch._C._set_grad_enabled(mode)",
            "torch._C._set_grad_enabled(mode and torch.is_grad_enabled())",
        ),
        neighbours=("MODE-01", "MODE-05", "MODE-06"),
    ),
    fault("MODE-07: zeros under no_grad never require grad", _factory("zeros"), "a factory"),
    fault("MODE-07: tensor under no_grad never requires grad", _factory("tensor"), "a factory"),
)
