"""Faults of complex gradients."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from autograd_conformance.selftests.planted_clauses.intercept import around_apply, around_backward
from autograd_conformance.selftests.planting import Fault


@contextmanager
def _knowing_inputs(change: Callable[[Any, Any, Any], Any]) -> Iterator[None]:
    """Each gradient is ``change(gradient, dtype of the input, cotangents)``."""

    def apply(original: Any, cls: Any, *args: Any, **kwargs: Any) -> Any:
        outputs = original(cls, *args, **kwargs)
        for y in outputs if isinstance(outputs, tuple) else (outputs,):
            if isinstance(y, torch.Tensor) and y.grad_fn is not None:
                y.grad_fn.kinds = [x.dtype if isinstance(x, torch.Tensor) else None for x in args]
        return outputs

    def backward(original: Any, ctx: Any, *cotangents: Any) -> Any:
        found = original(ctx, *cotangents)
        gradients = found if isinstance(found, tuple) else (found,)
        kinds = getattr(ctx, "kinds", [None] * len(gradients))
        return tuple(
            g if g is None or kind is None else change(g, kind, cotangents)
            for g, kind in zip(gradients, kinds, strict=True)
        )

    with around_apply(apply), around_backward(backward):
        yield


def _conjugated(g: Any, dtype: Any, _: Any) -> Any:
    return g.conj() if g.is_complex() and dtype.is_complex else g


def _without_conjugate_cotangents(original: Any, ctx: Any, *cotangents: Any) -> Any:
    return original(ctx, *(g if g is None else g.conj() for g in cotangents))


def _real_part(g: Any, dtype: Any, _: Any) -> Any:
    return g.real if g.is_complex() and not dtype.is_complex else g


def _real_if_close(g: Any, dtype: Any, _: Any) -> Any:
    return _real_part(g, dtype, _) if g.is_complex() and not g.imag.any() else g


def _refused_unless_complex(g: Any, dtype: Any, _: Any) -> Any:
    if dtype.is_complex and not g.is_complex():
        raise RuntimeError("a real gradient for a complex input")
    return g


def _halved(g: Any, dtype: Any, cotangents: Any) -> Any:
    real = not any(c is not None and c.is_complex() for c in cotangents)
    return g / 2 if dtype.is_complex and g.is_complex() and real else g


def _doubled(g: Any, dtype: Any, cotangents: Any) -> Any:
    crossed = any(c is not None and c.is_complex() for c in cotangents) and not dtype.is_complex
    return g * 2 if crossed and not g.is_complex() else g


FAULTS = (
    Fault("CPLX-01", lambda: _knowing_inputs(_conjugated), neighbours=("CPLX-03",)),
    Fault(
        "CPLX-01",
        lambda: around_backward(_without_conjugate_cotangents),
        neighbours=("CPLX-02", "CPLX-03"),
        words="cotangents of complex outputs arrive conjugated",
    ),
    Fault("CPLX-02", lambda: _knowing_inputs(_real_part)),
    Fault("CPLX-02", lambda: _knowing_inputs(_real_if_close), words="a complex gradient with real values is accepted"),
    Fault("CPLX-02", lambda: _knowing_inputs(_refused_unless_complex), words="real gradients are refused"),
    Fault("CPLX-03", lambda: _knowing_inputs(_halved)),
    Fault(
        "CPLX-03",
        lambda: _knowing_inputs(_doubled),
        neighbours=("CPLX-02",),
        words="gradients from complex outputs to real inputs are doubled",
    ),
)
