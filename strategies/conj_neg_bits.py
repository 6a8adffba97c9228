"""Tensors that are negated or conjugated lazily: a bit says so, and their memory holds other numbers."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from autograd_conformance.strategies.calls import Call, Cotangent, Tensor

# The layouts of such tensors, each with the call that gives a tensor of another layout.
_RESOLVING = {"negated": "resolve_neg()", "conjugated": "resolve_conj()"}


def resolved(call: Call) -> Call:
    """The call with contiguous tensors and cotangents in place of the lazy ones."""
    args = tuple(replace(a, layout=_plain(a.layout)) if isinstance(a, Tensor) else a for a in call.args)
    cotangents = tuple(c and replace(c, layout=_plain(c.layout)) for c in call.cotangents)
    return replace(call, args=args, cotangents=cotangents)


def advice(layouts: Collection[str]) -> str:
    """What to call before code that reads memory; empty unless all the layouts are lazy."""
    calls = [call for layout, call in _RESOLVING.items() if layout in layouts]
    return f"call {' and '.join(calls)} first" if len(calls) == len(set(layouts)) else ""


def layouts_of(call: Call) -> set[str]:
    """The lazy layouts of a call's tensors and cotangents."""
    stored: list[Tensor | Cotangent] = [*call.tensors, *(c for c in call.cotangents if c is not None)]
    return {each.layout for each in stored} & set(_RESOLVING)


def _plain(layout: str) -> str:
    return "contiguous" if layout in _RESOLVING else layout
