"""Triton's interpreter computes with NumPy, which has no bfloat16: what it makes of a kernel that does."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from autograd_conformance.harness.check.discovery.nondeterminism import results_of
from autograd_conformance.harness.testing.attempts import attempted
from autograd_conformance.harness.testing.expected import Expected
from autograd_conformance.harness.testing.subject import Subject
from autograd_conformance.strategies.calls import Call, recast

BFLOAT16, _WIDER = "bfloat16", "float32"
# No rounding puts numbers in bfloat16 off by such a part of the largest one.
_FAR = 0.25

GARBLED = (
    "its numbers are far from those in float32: Triton's interpreter multiplies and adds the bits of bfloat16; convert "
    "to float32 in the kernel, or check bfloat16 on a GPU"
)


def garbled(subject: Subject, calls: Sequence[Call]) -> bool:
    """Whether a call in bfloat16 gives numbers that have nothing to do with those of the same call in float32."""
    return any(attempted(_far, subject, call) for call in calls)


def _far(subject: Subject, call: Call) -> bool:
    narrow = subject.made(recast(call, BFLOAT16, subject.function))
    wide = recast(call, _WIDER, subject.function)
    exact = narrow.of(wide, expected=Expected(subject.function, wide, values=narrow.values))
    pairs = zip(results_of(narrow), results_of(exact), strict=True)
    with np.errstate(all="ignore"):
        return any(
            not np.all(np.abs(y - x) <= _FAR * np.max(np.abs(x), initial=1.0))
            for y, x in pairs
            if y is not None and x is not None and np.all(np.isfinite(x))
        )
