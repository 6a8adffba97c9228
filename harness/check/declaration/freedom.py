"""What is free in the results of a Function, as a sign: a callable maps it away.

The Function is then checked together with a map to a canonical form, made of built-in operations. All results in which
only what is free differs have one canonical form. So values, differences and gradients are those of the canonical form,
and no cotangent depends on what is free.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from autograd_conformance.harness.outcomes import Declared, UsageProblem
from autograd_conformance.implementations.protocol import as_tuple

Tensors = tuple[Any, ...]
# A map of the outputs, given the arguments as well, to the canonical form.
Canonical = Callable[[Tensors, Tensors], Any]


def signs(*axes: int | None) -> Canonical:
    """A canonical form of matrices whose columns may have another sign, or another phase if they are complex.

    The k-th columns of all outputs change together. The canonical form has the product of each with that of the first,
    and of the others also their squares, which count where that of the first is zero.

    Args:
        *axes: For each output, -1 if it has such columns, -2 if it has such rows, which change by the conjugate, and
            None if nothing is free: `signs(None, -1)` for `eigh`, `signs(-1, None, -2)` for `svd`, `signs(-1, -2)` for
            `qr`. Such outputs have two dimensions or more.

    Raises:
        UsageProblem: If an axis is something else, or nothing is free.
    """
    if not {*axes} & {-1, -2} or not {*axes} <= {-1, -2, None}:
        raise UsageProblem(f"signs{axes}: each must be -1, -2 or None, and one of them -1 or -2")

    def canonical(outputs: Tensors, _: Tensors) -> Tensors:
        if len(outputs) != len(axes):
            raise Declared(f"signs{axes} is about {len(axes)} outputs, but the Function returns {len(outputs)}")
        columns = [y if axis != -2 else y.swapaxes(-1, -2).conj() for y, axis in zip(outputs, axes, strict=True)]
        first = next(y for y, axis in zip(columns, axes, strict=True) if axis is not None)
        return tuple(y if axis is None else _product(y, first) for y, axis in zip(columns, axes, strict=True))

    return canonical


def _product(y: Any, first: Any) -> Any:
    product: Any = y[..., :, None, :] * first.conj()[..., None, :, :]
    return product if y is first else product + (y * y.conj())[..., :, None, :]


def within(function: Callable[..., Any], canonical: Canonical | None) -> Callable[..., Any]:
    """The function, with its outputs in canonical form."""
    return function if canonical is None else lambda *given: canonical(as_tuple(function(*given)), given)
