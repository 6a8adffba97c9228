"""Small programs of products of tensors, which a control flow operator and a loop in NumPy both run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import cycle
from typing import Any

import numpy as np
import torch
from hypothesis import strategies as st

from autograd_conformance.suites.dialects.torch._compiled import fresh

# Whether the operator is called as it is, in a batch, or within compiled code, which has the most of it.
RUNS = ("compiled", "uncompiled")
BATCHED = (*RUNS, "batched")


def terms(*weights: int) -> st.SearchStrategy[Any]:
    """The weights of a sum of products, which has each second factor once, and the places of their first factors."""
    return st.lists(st.tuples(st.sampled_from(weights), st.integers(0, 2)), min_size=1, max_size=2)


SUMS = terms(1, -1, 2)
# Whether tensors require grad. There are few examples, so the simplest ones have what matters.
CAPTURED = st.lists(st.sampled_from((True, False)), min_size=1, max_size=2)
GIVEN = st.lists(st.booleans(), min_size=1, max_size=2)

# How several tensors are one argument: what makes it, and what gives its tensors.
TREES = {
    "tuple": (tuple, list),
    "dict": (lambda tensors: dict(zip("abc", tensors, strict=False)), lambda tree: [tree[key] for key in tree]),
}

# An imaginary part so small that its square is lost; a power of two, so that products of whole numbers are exact.
_SLIGHT = 2.0**-200


def sums(each: Sequence[Any], firsts: Sequence[Any], seconds: Sequence[Any]) -> tuple[Any, ...]:
    """For each list of terms the sum of ``weight * first * second``."""
    return tuple(
        sum(w * firsts[i % len(firsts)] * second for second, (w, i) in zip(seconds, cycle(one), strict=False))
        for one in each
    )


def filled(shape: tuple[int, ...], start: int) -> np.ndarray[Any, Any]:
    """Small numbers of an array; others for another ``start``."""
    return np.resize(np.roll((1.0, -1.0, 2.0), start), shape)


def looped(step: Callable[..., Any], carry: Sequence[Any], xs: Sequence[Any], reverse: bool = False) -> tuple[Any, ...]:
    """The last carry and the stacked results of a loop in NumPy."""
    found = []
    for n in sorted(range(len(xs[0])), reverse=reverse):
        carry, results = step(carry, [x[n] for x in xs])
        found.append(results)
    return (*carry, *(np.stack(each) for each in zip(*found[:: -1 if reverse else 1], strict=True)))


def assert_as_loop(
    subject: Any, call: Callable[..., Any], right: Callable[..., Any], arrays: Sequence[Any], needs: Sequence[bool],
    run: str, factors: Sequence[float] | None = None,
) -> None:  # fmt: skip
    """``call`` of tensors, of which some require grad, has the outputs and gradients of ``right`` of arrays.

    By ``factors`` the gradients of a custom backward are larger than those of the operations.
    """
    if run == "batched":
        arrays, right = [np.stack((a, 2 * a)) for a in arrays], _for_each(right)
    leaves = [subject.tensor(a).requires_grad_(needed) for a, needed in zip(arrays, needs, strict=True)]
    expected = right(*arrays)
    cotangents = [filled(np.shape(y), n) for n, y in enumerate(expected)]
    with fresh():
        outputs = _RUN[run](call)(*leaves)
        subject.assert_all_same("outputs", got=outputs, expected=expected)
        tracked = [x for x in leaves if x.requires_grad]
        got = _gradients(outputs, tracked, subject.tensors(cotangents))
    times = factors or [1] * len(needs)
    slopes = [times[n] * _slopes(right, arrays, n, cotangents) for n, needed in enumerate(needs) if needed]
    subject.assert_all_same("gradients of what requires grad", got=got, expected=slopes)


_RUN = {
    "compiled": partial(torch.compile, backend="aot_eager"),
    "uncompiled": lambda call: call,
    "batched": torch.vmap,
}


def _for_each(right: Callable[..., Any]) -> Callable[..., Any]:
    """The stacked results of each row of the arrays."""

    def stacked(*arrays: Any) -> tuple[Any, ...]:
        found = [right(*row) for row in zip(*arrays, strict=True)]
        return tuple(np.stack(each) for each in zip(*found, strict=True))

    return stacked


def _gradients(outputs: Sequence[Any], leaves: Sequence[Any], cotangents: Sequence[Any]) -> Sequence[Any]:
    """The gradients of the leaves; zeros for what the outputs do not depend on."""
    pairs = [(y, g) for y, g in zip(outputs, cotangents, strict=True) if y.requires_grad]
    if not pairs or not leaves:
        return [torch.zeros_like(x) for x in leaves]
    starts, given = zip(*pairs, strict=True)
    return torch.autograd.grad(starts, leaves, given, materialize_grads=True)


def _slopes(
    right: Callable[..., Any], arrays: Sequence[Any], n: int, cotangents: Sequence[Any]
) -> np.ndarray[Any, Any]:
    """The gradient of the nth array, exact for whole numbers: of a slight imaginary part in one element at a time."""
    found = np.zeros(np.shape(arrays[n]))
    for at in np.ndindex(found.shape):
        given = [np.asarray(a, complex) for a in arrays]
        given[n] = given[n].copy()
        given[n][at] += 1j * _SLIGHT
        found[at] = sum((g * y).sum() for g, y in zip(cotangents, right(*given), strict=True)).imag / _SLIGHT
    return found
