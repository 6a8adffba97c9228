"""What autograd makes of a program's call later: which gradients backward gets, and what it gives."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any

from .arguments import PACKAGE, is_tensor

# What a program may do with a call, by the name that is written.
SECOND, AGAIN, EXPANDED, STRIDED, UNUSED = "second", "again", "expanded", "strided", "unused"


def follow(cls: Any, outputs: Any, did: Callable[[str], None], bad: Callable[[int, str], None],
           spent: Callable[[float], None]) -> None:  # fmt: skip
    """Say what the program does with the outputs of a call of the Function ``cls``, once autograd comes to it.

    ``did`` gets a word for each thing that it does. ``bad`` gets the number of a tensor argument and what its gradient
    has, NaN or infinity, while the outputs, and the gradients that backward got, are finite. ``spent`` gets the seconds
    that this took.
    """
    start = perf_counter()
    found = [y for y in (outputs if isinstance(outputs, tuple) else (outputs,)) if is_tensor(y)]
    nodes: list[Any] = [y.grad_fn for y in found]
    node: Any = next((node for node in nodes if isinstance(node, getattr(cls, "_backward_cls", ()))), None)
    if node is not None:
        finite, rounds = all(map(_is_finite, found)), itertools.count()

        def ended(gradients: Sequence[Any], cotangents: Sequence[Any]) -> None:
            begun = perf_counter()
            try:
                for word in _words(cotangents, next(rounds)):
                    did(word)
                if finite and all(map(_is_finite, cotangents)):
                    for number, gradient in enumerate(gradients):
                        if not _is_finite(gradient):
                            bad(number, "nan" if bool(gradient.isnan().any()) else "inf")
            except Exception:  # noqa: BLE001 - tensors may be anything, and the program goes on
                pass
            spent(perf_counter() - begun)

        node.register_hook(ended)
    spent(perf_counter() - start)


def _words(cotangents: Sequence[Any], earlier: int) -> list[str]:
    given = [g for g in cotangents if g is not None]
    found = {
        SECOND: sys.modules[PACKAGE].is_grad_enabled(),
        AGAIN: earlier > 0,
        UNUSED: len(given) < len(cotangents),
        EXPANDED: any(0 in _strides(g) for g in given),
        STRIDED: any(0 not in _strides(g) and not g.is_contiguous() for g in given),
    }
    return [word for word, holds in found.items() if holds]


def _strides(tensor: Any) -> list[int]:
    """The strides along the dimensions that have more than one entry."""
    return [stride for stride, size in zip(tensor.stride(), tensor.shape, strict=True) if size > 1]


def _is_finite(tensor: Any) -> bool:
    if tensor is None or not (tensor.is_floating_point() or tensor.is_complex()):
        return True
    return bool(tensor.detach().isfinite().all())
