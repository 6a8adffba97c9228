"""The text of an adapter for what sits on top of an implementation: a jit, or a wrapper that calls Functions itself."""

from __future__ import annotations

from autograd_conformance.implementations.adapting.filling import NAME
from autograd_conformance.implementations.adapting.template import class_name

_OVER_TORCH = '''\
"""The adapter of {name}, which sits on top of torch, for autograd-conformance.

Replace each {fill_in}. At any time, this says what is missing and what is wrong, all at once:

    autograd-conformance run FILE

Tensors, Functions and gradients are those of torch; {name} says how a Function is called.
"""

from weakref import WeakKeyDictionary

import torch

from autograd_conformance.implementations.adapting.filling import {fill_in}
from autograd_conformance.implementations.torch import TorchImplementation


class {cls}(TorchImplementation):
    name = "{name}"
    # The imported package that is checked: its __version__ and __file__ stand in reports.
    package = {fill_in}
    parts = (torch,)
    # What its documentation does not claim is left out here. It runs too, and never fails a run.
    capabilities = TorchImplementation.capabilities - {{"vmap", "batched_cotangents", "jvp", "compile"}}
    # What torch is known to break shows through. Its own interface and its contract of ctx say nothing about what is on
    # top of it, nor do its scripts.
    dialect, keeps_contract, script = "", False, None
    # The share of a profile's examples: below 1 if each new shape is compiled, say.
    share_of_examples = 1.0

    def __init__(self):
        super().__init__()
        self._called = WeakKeyDictionary()

    def call(self, apply):
        """A function of the arguments of apply that calls it through the package: package.jit(apply), say."""
        raise {fill_in}

    def function(self, cls):
        if cls not in self._called:
            self._called[cls] = self.call(super().function(cls))
        return self._called[cls]

    def simulated_devices(self):
        return ()

    def abstract_devices(self):
        return ()
'''

# By what is below.
TEXTS = {"torch": _OVER_TORCH}


def text(name: str, below: str) -> str:
    """The adapter with that name, of what sits on top of one of `TEXTS`."""
    return TEXTS[below].format(name=name, cls=class_name(name), fill_in=NAME)
