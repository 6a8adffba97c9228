"""PyTorch through its function transforms: `torch.func.vjp`, `torch.func.jvp` and `torch.func.vmap`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from autograd_conformance.implementations.adapting import TransformingImplementation
from autograd_conformance.implementations.protocol import Tensors
from autograd_conformance.implementations.torch import TorchImplementation


class TorchFuncImplementation(TransformingImplementation, TorchImplementation):
    """The same classes as for torch, called through ``apply`` inside a transform; they need a ``setup_context``.

    Source: the note Extending torch.func with autograd.Function.
    """

    name = "torch-func"
    capabilities = frozenset({
        "classes", "keywords", "tuples", "gradient_count", "gradient_checks", "gradient_fitting", "none_gradients",
        "needs_input_grad", "materialize", "nondifferentiable", "double_backward", "jvp", "vmap", "batched_cotangents",
        "views",
    })  # fmt: skip
    deviations = ()
    dialect = ""
    script = None
    keeps_contract = False
    needs_setup_context = True
    zeros_for_none = True

    def simulated_devices(self) -> tuple[str, ...]:
        return ()

    def abstract_devices(self) -> tuple[str, ...]:
        return ()

    def pulled(self, f: Callable[..., Tensors], primals: Tensors) -> tuple[Tensors, Callable[..., Any]]:
        outputs: Tensors
        outputs, pull = torch.func.vjp(f, *primals)  # type: ignore[misc]

        def pull_all(cotangents: Any) -> Any:
            # torch.func needs a cotangent for every output.
            pairs = zip(outputs, cotangents, strict=True)
            return pull(tuple(torch.zeros_like(y) if g is None else g for y, g in pairs))

        return outputs, pull_all

    def pushed(self, f: Callable[..., Tensors], primals: Tensors, tangents: Tensors) -> tuple[Tensors, Tensors]:
        outputs, found = torch.func.jvp(f, primals, tangents)[:2]
        return outputs, found
