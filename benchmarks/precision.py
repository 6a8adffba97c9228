"""The smallest systematic error of a gradient that `check` sees, in each dtype, as a table.

One gradient of each Function is too large by a factor, in one dtype only. The error is bisected: does the property that
compares numbers of that dtype fail, with the profile gate?
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import torch
from tabulate import tabulate

from autograd_conformance.harness.check import Declaration
from autograd_conformance.suites.declared import Checked

# The property that compares numbers of the dtype.
DTYPES = {"float64": "VJP-FD", "float32": "VJP-REF", "float16": "VJP-REF", "bfloat16": "VJP-REF"}
# The exponents of two of the largest and the smallest error to try, and the precision of the answer.
LARGEST, SMALLEST, PRECISION = -1.0, -40.0, 0.5


def _softmax(g: Any, y: Any, _: Any) -> Any:
    return y * (g - (g * y).sum(-1, keepdim=True))


def _normalized(x: Any) -> Any:
    return (x - x.mean(-1, keepdim=True)) / (x.var(-1, unbiased=False, keepdim=True) + 0.1).sqrt()


def _normalizing(g: Any, y: Any, x: Any) -> Any:
    inner = g - g.mean(-1, keepdim=True) - y * (g * y).mean(-1, keepdim=True)
    return inner / (x.var(-1, unbiased=False, keepdim=True) + 0.1).sqrt()


# Forward, and the gradient from the cotangent, the output and the input.
FUNCTIONS: dict[str, tuple[Callable[..., Any], Callable[..., Any], str]] = {
    "square": (lambda x: x * x, lambda g, _, x: 2 * g * x, "float[...]"),
    "tanh": (torch.tanh, lambda g, y, _: g * (1 - y * y), "float[...]"),
    "softmax": (lambda x: x.softmax(-1), _softmax, "float[b,n]"),
    "normalize": (_normalized, _normalizing, "float[b,n]"),
}


def faulty(name: str, dtype: str, error: float) -> Declaration:
    """A Function whose gradient is too large by that share, in one dtype."""
    forward, gradient, argument = FUNCTIONS[name]
    factor = 1 + error

    def run(ctx: Any, x: Any) -> Any:
        y = forward(x)
        ctx.save_for_backward(y, x)
        return y

    def backward(ctx: Any, g: Any) -> Any:
        found = gradient(g, *ctx.saved_tensors)
        # Multiplied in double precision: in lower precision the factor itself would be rounded.
        return (found.double() * factor).to(found.dtype) if found.dtype is getattr(torch, dtype) else found

    methods = {"forward": staticmethod(run), "backward": staticmethod(backward)}
    return Declaration(type(name, (torch.autograd.Function,), methods), argument, name=name)


def seen(name: str, dtype: str, error: float) -> bool:
    """Whether the property fails."""
    checked = Checked(faulty(name, dtype, error), seed=0, shrink=False)
    return any(line["outcome"] == "fail" for line in checked.lines(DTYPES[dtype]))


def smallest(name: str, dtype: str) -> float | None:
    """The smallest error that is seen; None if the largest is not."""
    if not seen(name, dtype, 2.0**LARGEST):
        return None
    large, small = LARGEST, SMALLEST
    while large - small > PRECISION:
        middle = (large + small) / 2
        large, small = (middle, small) if seen(name, dtype, 2.0**middle) else (large, middle)
    return float(2.0**large)


def main() -> None:
    """Print the table."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    rows = [[name, *(smallest(name, dtype) for dtype in DTYPES)] for name in FUNCTIONS]
    print(tabulate(rows, headers=["Function", *DTYPES], floatfmt=".2g", missingval="none", tablefmt="github"))


if __name__ == "__main__":
    main()
