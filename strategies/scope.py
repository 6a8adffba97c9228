"""What may vary from call to call: the scope of a draw, a frozen value with named presets, and the masks of a call."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal


@dataclass(frozen=True)
class Scope:
    """Which calls of a Function `strategies.calls.calls` draws. The default draws everything but extremes.

    Take a preset, such as ``PLAIN``, or ``dataclasses.replace`` fields of one.

    * ``mask``: which tensors require grad: at least ``"some"``, the ``"full"`` set, or ``"any"`` subset with the empty
      one.
    * ``layouts``: the layouts of tensor arguments: ``"any"``, only ``"contiguous"``, ``"non-contiguous"`` for every
      tensor whose shape allows it, or ``"unexpanded"``, which is any layout without a stride of 0.
    * ``cotangent_layouts``: cotangents have any layout; otherwise they are contiguous.
    * ``unused_outputs``: an output may have no cotangent.
    * ``omitted_arguments``: optional arguments may be left out.
    * ``specials``: what is written over single elements: sometimes ``"ordinary"`` values such as -0.0, always
      ``"extreme"`` magnitudes, always ``"any number"``, NaN and infinities among them, or ``"none"``.
    * ``smooth``: values keep away from kinks and ties.
    * ``steady``: every shape takes the same number of choices. A failure at one of many large shapes then shrinks to a
      small one.
    * ``seldom_empty``: one call of twelve has tensors without elements. Otherwise each kind of shape is equally often.
    """

    mask: Literal["some", "full", "any"] = "some"
    layouts: Literal["any", "contiguous", "non-contiguous", "unexpanded"] = "any"
    cotangent_layouts: bool = True
    unused_outputs: bool = True
    omitted_arguments: bool = True
    specials: Literal["ordinary", "extreme", "any number", "none"] = "ordinary"
    smooth: bool = False
    steady: bool = False
    seldom_empty: bool = False


ANY_CALL = Scope()
ANY_MASK = Scope(mask="any")
FULL_MASK = Scope(mask="full")
ALL_USED = Scope(unused_outputs=False)
CONTIGUOUS = Scope(layouts="contiguous")
NON_CONTIGUOUS = Scope(layouts="non-contiguous")
UNEXPANDED = Scope(layouts="unexpanded")
# Contiguous arguments, and a cotangent for every output.
PLAIN = Scope(layouts="contiguous", unused_outputs=False)
# Points at which derivatives exist.
SMOOTH = Scope(smooth=True)


@lru_cache(maxsize=64)
def masks(count: int, *, some: bool) -> tuple[tuple[bool, ...], ...]:
    """Every subset of ``count`` tensors, the full one first; with ``some``, without the empty one."""
    subsets = [tuple(bool(number >> bit & 1) for bit in range(count)) for number in range(2**count)]
    return tuple(sorted((s for s in subsets if any(s) or not some), key=lambda s: -sum(s)))
