"""PyTorch with every custom Function called through `torch.compile`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

import torch

from autograd_conformance.implementations.torch import TorchImplementation


class TorchCompileImplementation(TorchImplementation):
    """The same classes as for torch, called through a compiled function that calls ``apply``.

    The back end is aot_eager: forward and backward of a Function are traced, and the trace is run operation by
    operation. Second derivatives are not claimed: AOTAutograd refuses them.
    """

    name = "torch-compile"
    # What compiles; a subclass may have another one.
    backend = "aot_eager"
    capabilities = frozenset({
        "tuples", "keywords", "none_gradients", "needs_input_grad", "materialize", "nondifferentiable", "requires_grad",
        "accumulate",
    })  # fmt: skip
    # A compiled call runs what it cannot trace in plain PyTorch.
    deviations = tuple(d for d in TorchImplementation.deviations if "FWD-GRADFLAG" in d.ids)
    dialect = ""
    script = None
    keeps_contract = False
    # Every new shape, dtype or mask is compiled, which takes a hundred times as long as running it.
    share_of_examples = 0.12

    def __init__(self) -> None:
        self._compiled: WeakKeyDictionary[Any, Callable[..., Any]] = WeakKeyDictionary()
        # Beyond the limit calls are no longer compiled, and the compiler would not be checked.
        torch._dynamo.config.recompile_limit = torch._dynamo.config.accumulated_recompile_limit = 10**6

    def simulated_devices(self) -> tuple[str, ...]:
        return ()

    def abstract_devices(self) -> tuple[str, ...]:
        return ()

    def function(self, cls: Any) -> Callable[..., Any]:
        if cls not in self._compiled:
            apply = super().function(cls)

            def call(*args: Any) -> Any:
                return apply(*args)

            self._compiled[cls] = torch.compile(call, backend=self.backend, dynamic=False)
        return self._compiled[cls]
