"""What autograd makes of a program's call later: which gradients backward gets, and what it gives."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from time import perf_counter
from typing import Any

from .arguments import PACKAGE, is_tensor

# What a program may do with a call, by the name that is written.
SECOND, AGAIN, EXPANDED, STRIDED, UNUSED = "second", "again", "expanded", "strided", "unused"
# So many backward passes of a call are looked at, and tensors with at most so many elements.
_ROUNDS, _MOST = 3, 2**20


def follow(cls: Any, args: Sequence[Any], outputs: Any, did: Callable[[str], None],
           bad: Callable[[int, str], None], spent: Callable[[float], None]) -> None:  # fmt: skip
    """Say what the program does with the outputs of a call of the Function ``cls``, once autograd comes to it.

    ``did`` gets a word for each thing that it does. ``bad`` gets the number of a tensor argument that requires grad,
    and what its gradient has, NaN or infinity, while the outputs, and the gradients that backward got, are finite.
    ``spent`` gets the seconds that this took.
    """
    torch, start = sys.modules[PACKAGE], perf_counter()
    found = [y for y in (outputs if isinstance(outputs, tuple) else (outputs,)) if is_tensor(y)]
    nodes: list[Any] = [y.grad_fn for y in found]
    node: Any = next((node for node in nodes if isinstance(node, getattr(cls, "_backward_cls", ()))), None)
    if node is None or not all(map(_is_plain, (*args, *found))):
        return
    wanted = [x.requires_grad for x in args if is_tensor(x)]
    finite, rounds = all(map(_is_finite, found)), itertools.count()
    compiling, active = torch.compiler.is_compiling, torch._C

    def ended(gradients: Sequence[Any], cotangents: Sequence[Any]) -> None:
        # A compiled backward, and modes of the program's that see operations, must not see those of this.
        if compiling():
            return
        if active._len_torch_dispatch_stack() or active._len_torch_function_stack():
            return
        number, begun = next(rounds), perf_counter()
        if number >= _ROUNDS:
            return
        with suppress(Exception):
            for word in _words(cotangents, number):
                did(word)
            if torch.is_grad_enabled():
                _when_differentiated(gradients, did)
            if finite and all(map(_is_finite, cotangents)):
                for slot, gradient in enumerate(gradients):
                    if wanted[slot] and not _is_finite(gradient):
                        bad(slot, "NaN" if bool(gradient.detach().isnan().any()) else "infinite")
        spent(perf_counter() - begun)

    node.register_hook(ended)
    spent(perf_counter() - start)


def _is_plain(value: Any) -> bool:
    """Whether a value is no large tensor, and on no accelerator."""
    return not is_tensor(value) or (value.device.type == "cpu" and value.numel() <= _MOST)


def _when_differentiated(gradients: Sequence[Any], did: Callable[[str], None]) -> None:
    """Say so once gradients are differentiated; at once if they cannot be, which a program would not notice."""
    nodes = [g.grad_fn for g in gradients if g is not None and g.requires_grad]
    for node in filter(None, nodes):
        node.register_hook(lambda *_: did(SECOND))
    if not nodes:
        did(SECOND)


def _words(cotangents: Sequence[Any], earlier: int) -> list[str]:
    given = [g for g in cotangents if g is not None]
    found = {
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
