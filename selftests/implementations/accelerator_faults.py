"""Faults of the simulated accelerator: the test of the suite that finds each, and words of its message.

A test is a clause with its variant, or a property of a documented Function.
"""

from __future__ import annotations

from typing import NamedTuple


class Found(NamedTuple):
    """The test that finds a fault, and words that its message has."""

    test: str
    says: str
    function: str = ""


FOUND_BY = {
    "no_synchronisation": Found("DEV-02", "three times the gradient"),
    "wrong_stream": Found("DEV-01/stream", "streams on which backward ran: got"),
    "guard_left": Found("DEV-04", "device and stream after backward"),
    "stale_memory": Found("DEV-07", "output: got"),
    "wrong_stride": Found("FWD-LAYOUT", "the inputs are transposed", "Exp"),
    "gradient_on_cpu": Found("DEV-05", "expected device simulated:0 but got cpu"),
    "accumulation_elsewhere": Found("VJP-ACCUMULATE", ".grad of argument 0 (x)", "Exp"),
    "coarse_exp": Found("DEV-06", "accuracy of float64 (that of float32)"),
    "coarse_product": Found("DEV-06", "accuracy of float32 (that of float16)"),
    "non_blocking_lies": Found("DEV-03", "output: got"),
    "dropped_offset": Found("DEV-03", "output: got"),
    "conj_forgotten": Found("FWD-VALUE", "output 0 (output) at ()", "Exp"),
    "lost_version": Found("VJP-INPLACE-SAFE", "changed in place before backward", "Exp"),
    "wrong_event": Found("DEV-02", "three times the gradient"),
    "unordered_copy": Found("DEV-05", "gradient of a leaf"),
    "empty_launch": Found("FWD-EMPTY", "gradient of argument 2 (bias)", "LinearFunction"),
    "wrong_dtype": Found("DEV-06/integers", "sum of int64: got"),
    "index_mixed": Found("DEV-05", "devices: got"),
}
