"""The Functions of `user_ops`: one of each verdict, right ones, and what a reference says of one."""

from __future__ import annotations

import numpy as np

from autograd_conformance.harness.check import Declaration
from autograd_conformance.selftests.check import user_ops as ops
from autograd_conformance.selftests.check.specimens import right, whole, wrong

ANY, PAIR = ("float[...]",), ("float[n,m]", "float[m]", "int(0..3)")
RIGHT = (
    *(ops.scaled, ops.rounded, ops.rounded_softly, ops.single, ops.module, ops.dropout),
    # It refuses loudly, which is no fault.
    Declaration(ops.Viewing, "float[n,m]"),
)
REFERENCES = {
    "with tensors": lambda x, w, k: x * w * (k + 1),
    "with arrays": lambda x, w, k: np.multiply(x, w) * (k + 1),
}

SPECIMENS = (
    *map(whole, RIGHT),
    *(
        wrong(function.__name__, property_id, function, *arguments, tests=f"{property_id}*", word=word)
        for function, arguments, word, property_id in (
            (ops.Wrong, PAIR, "wrong", "VJP-FD"),
            (ops.Kept, ANY, "not detected", "VJP-INPLACE-SAFE"),
            (ops.Leaking, ANY, "leaks", "MEM-FREE"),
            (ops.Detached, ANY, "silently detached", "DBL-CORRECT"),
            (ops.ManyGradients, ANY, "raises", "VJP-REF"),
            (ops.Overflowing, ANY, "not finite", "VJP-FINITE"),
            (ops.Rounded, ANY, "wrong", "VJP-FD"),
        )
    ),
    *(
        right(f"a reference {name}", "FWD-VALUE* VJP-REF* VJP-FD*", ops.Scaled, *PAIR, reference=f, decided=False)
        for name, f in REFERENCES.items()
    ),
    wrong("another reference", "FWD-VALUE", ops.Scaled, *PAIR, reference=lambda x, w, k: x * w * (k + 2), word="wrong"),
)
