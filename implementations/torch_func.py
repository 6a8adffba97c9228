"""PyTorch through its function transforms: `torch.func.vjp`, `torch.func.jvp` and `torch.func.vmap`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from autograd_conformance.implementations.lowering import as_tuple
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

        def of_tracked(*moving: Any) -> Tensors:
            given = iter(moving)
            return as_tuple(f(*(next(given) if t else x for x, t in zip(primals, tracked, strict=True))))

        outputs: Tensors
        outputs, pull = torch.func.vjp(  # type: ignore[misc]
            of_tracked, *(x for x, t in zip(primals, tracked, strict=True) if t)
        )

        def pullback(
            cotangents: Sequence[Any], wrt: Sequence[bool] | None = None, differentiable: bool = False
        ) -> Tensors:
            # torch.func wants a cotangent for every output.
            pairs = zip(outputs, cotangents, strict=True)
            found = iter(pull(tuple(torch.zeros_like(y) if g is None else g for y, g in pairs)))
            gradients = [next(found) if t else None for t in tracked]
            return tuple(g if w else None for g, w in zip(gradients, wrt or tracked, strict=True))

        return outputs, pullback

    def jvp(self, f: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Tensors, Tensors]:
        moving = [t is not None for t in tangents]

        def of_moving(*given: Any) -> Tensors:
            new = iter(given)
            return as_tuple(f(*(next(new) if m else x for x, m in zip(primals, moving, strict=True))))

        points = tuple(x for x, m in zip(primals, moving, strict=True) if m)
        outputs, found = torch.func.jvp(of_moving, points, tuple(t for t in tangents if t is not None))[:2]
        return outputs, found

    def batched_vjp(
        self, f: Callable[..., Any], primals: Sequence[Any], cotangents: Sequence[Any], *, track: Sequence[bool]
    ) -> Tensors:
        _, pullback = self.vjp(f, primals, track=track)
        found = iter(torch.func.vmap(lambda *given: tuple(g for g in pullback(given) if g is not None))(*cotangents))
        return tuple(next(found) if t else None for t in track)
