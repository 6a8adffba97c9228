"""PyTorch through its function transforms: `torch.func.vjp`, `torch.func.jvp` and `torch.func.vmap`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from autograd_conformance.implementations.lowering import as_tuple, merged, of_moving
from autograd_conformance.implementations.protocol import Pullback, Tensors
from autograd_conformance.implementations.torch import TorchImplementation


class TorchFuncImplementation(TorchImplementation):
    """The same classes as for torch, called through ``apply`` within a transform; they need a ``setup_context``.

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

    def vjp(
        self, f: Callable[..., Any], primals: Sequence[Any], *, track: Sequence[bool] | None = None
    ) -> tuple[Tensors, Pullback]:
        tracked = [True] * len(primals) if track is None else list(track)

        of_tracked, moving = of_moving(lambda *xs: as_tuple(f(*xs)), primals, tracked)
        outputs: Tensors
        outputs, pull = torch.func.vjp(of_tracked, *moving)  # type: ignore[misc]

        def pullback(
            cotangents: Sequence[Any], wrt: Sequence[bool] | None = None, differentiable: bool = False
        ) -> Tensors:
            # torch.func wants a cotangent for every output.
            pairs = zip(outputs, cotangents, strict=True)
            found = pull(tuple(torch.zeros_like(y) if g is None else g for y, g in pairs))
            gradients = merged([None] * len(tracked), tracked, found)
            return tuple(g if w else None for g, w in zip(gradients, wrt or tracked, strict=True))

        return outputs, pullback

    def jvp(self, f: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Tensors, Tensors]:
        moves = [t is not None for t in tangents]
        of_those, points = of_moving(lambda *xs: as_tuple(f(*xs)), primals, moves)
        outputs, found = torch.func.jvp(of_those, points, tuple(t for t in tangents if t is not None))[:2]
        return outputs, found

    def batched_vjp(
        self, f: Callable[..., Any], primals: Sequence[Any], cotangents: Sequence[Any], *, track: Sequence[bool]
    ) -> Tensors:
        _, pullback = self.vjp(f, primals, track=track)
        found = iter(torch.func.vmap(lambda *given: tuple(g for g in pullback(given) if g is not None))(*cotangents))
        return tuple(next(found) if t else None for t in track)
