"""Planted faults in formulas, kernels and state of operators. Each right twin differs in nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from autograd_conformance.selftests.faults.operators import REFUSED, Operator, of

ONE, TWO = ("float[n]",), ("float[n]", "float[n]")


def vector(*shape: int, start: float = 0.5) -> torch.Tensor:
    size = int(torch.Size(shape).numel())
    return torch.linspace(start, start + 1.5, size, dtype=torch.float64).reshape(shape).requires_grad_()


def ones() -> list[tuple[Any, ...]]:
    return [(vector(3),), (vector(2, 3),)]


def twos() -> list[tuple[Any, ...]]:
    return [(vector(3), vector(3, start=1.0)), (vector(2, 3), vector(2, 3, start=-1.0))]


def saving(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.save_for_backward(*inputs)


def _product(ctx: Any, g: Any) -> Any:
    x, y = ctx.saved_tensors
    return g * y.conj(), g * x.conj()


PRODUCT = Operator(
    schema="(Tensor x, Tensor y) -> Tensor",
    kernel=lambda x, y: x * y,
    fake=lambda x, y: torch.empty_like(x),
    backward=_product,
    setup_context=saving,
)
SQUARE = Operator(
    schema="(Tensor x) -> Tensor",
    kernel=lambda x: x * x,
    fake=torch.empty_like,
    backward=lambda ctx, g: 2 * g * ctx.saved_tensors[0].conj(),
    setup_context=saving,
)


in_product, in_square = of(PRODUCT, TWO, twos), of(SQUARE, ONE, ones)
in_number = of(
    SQUARE, ("complex[n]",), lambda: [((1 + 0.5j) * vector(3).detach()).requires_grad_().unsqueeze(0).unbind()]
)


def _gradients(formula: Callable[..., Any]) -> Callable[..., Any]:
    """A backward of the product: ``formula(ctx, g, x, y)``."""
    return lambda ctx, g: formula(ctx, g, *ctx.saved_tensors)


def _in_place(ctx: Any, g: Any) -> Any:
    (x,) = ctx.saved_tensors
    with torch.no_grad():
        x.data.mul_(2)
    return g * x


def _cotangent_in_place(ctx: Any, g: Any) -> Any:
    return g.mul_(2 * ctx.saved_tensors[0])


_LAST: list[Any] = []


def _remembering(ctx: Any, inputs: Any, output: Any) -> None:
    _LAST[:] = inputs


_KNOWN: dict[Any, Any] = {}


def _cached(x: Any) -> Any:
    """The square, computed once for each shape."""
    return _KNOWN.setdefault((tuple(x.shape), x.dtype), x * x).clone()


def _contiguous(x: Any) -> Any:
    """The memory of a tensor, read as if it were contiguous."""
    base = x.resolve_conj().resolve_neg()
    strides = torch.empty(x.shape, device="meta").stride()
    return torch.as_strided(base, x.shape, strides) if base.untyped_storage().nbytes() else base


def _without_tail(x: Any) -> Any:
    """Zero beyond the first 64 elements."""
    kept = torch.arange(x.numel(), device=x.device).reshape(x.shape) < 64
    return torch.where(kept, x, torch.zeros_like(x))


def _changes(x: Any) -> Any:
    y = x * x
    with torch.no_grad():
        x.add_(1)
    return y


IN_GRADIENT = (
    in_square(
        "factor",
        "the gradient has a factor too many",
        "VJP-FD",
        backward=lambda ctx, g: 4 * g * ctx.saved_tensors[0].conj(),
    ),
    in_product(
        "sign",
        "a gradient has the wrong sign",
        "VJP-FD",
        backward=_gradients(lambda _, g, x, y: (g * y.conj(), -g * x.conj())),
    ),
    in_product(
        "swapped",
        "the gradients are swapped",
        "VJP-FD",
        backward=_gradients(lambda _, g, x, y: (g * x.conj(), g * y.conj())),
    ),
    in_product(
        "flags",
        "needs_input_grad is asked for the other argument",
        "VJP-FD",
        backward=_gradients(
            lambda ctx, g, x, y: (
                g * y.conj() if ctx.needs_input_grad[1] else None,
                g * x.conj() if ctx.needs_input_grad[0] else None,
            )
        ),
    ),
    in_product(
        "saves_one_twice",
        "setup_context saves the first argument twice",
        "VJP-FD",
        setup_context=lambda ctx, inputs, output: ctx.save_for_backward(inputs[0], inputs[0]),
    ),
    in_square(
        "saves_output",
        "setup_context saves the output instead of the input",
        "VJP-FD",
        setup_context=lambda ctx, inputs, output: ctx.save_for_backward(output),
    ),
    in_number(
        "conjugate", "the factor is not conjugated", "VJP-FD", backward=lambda ctx, g: 2 * g * ctx.saved_tensors[0]
    ),
    in_square(
        "at_zero",
        "the gradient at 0 is NaN",
        "VJP-FINITE",
        backward=lambda ctx, g: 2 * g * ctx.saved_tensors[0].conj() ** 2 / ctx.saved_tensors[0].conj(),
    ),
    in_square(
        "tail",
        "no gradient beyond 64 elements",
        "VJP-FD/long",
        backward=lambda ctx, g: _without_tail(2 * g * ctx.saved_tensors[0].conj()),
    ),
    in_square(
        "half",
        "in half precision the gradient has a factor too many",
        "VJP-REF",
        backward=lambda ctx, g: (3 if g.dtype is torch.float16 else 2) * g * ctx.saved_tensors[0].conj(),
    ),
    in_square(
        "second",
        "the second derivative is lost",
        "DBL-CORRECT",
        backward=lambda ctx, g: 2 * g * ctx.saved_tensors[0].detach().conj(),
    ),
    in_square(
        "cotangent_memory",
        "backward reads the cotangent's memory as if it were contiguous",
        "VJP-COTANGENT-LAYOUT",
        backward=lambda ctx, g: 2 * _contiguous(g) * ctx.saved_tensors[0].conj(),
    ),
)

IN_STATE = (
    in_square("saved_changes", "backward changes a saved tensor", "VJP-PURE", backward=_in_place),
    in_square("cotangent_changes", "backward changes its cotangent", "VJP-PURE", backward=_cotangent_in_place),
    in_square(
        "last_call",
        "backward uses the arguments of the last call",
        "VJP-CHAIN/instances",
        setup_context=_remembering,
        backward=lambda _, g: 2 * g * _LAST[0].conj(),
    ),
    in_square("cached", "the kernel returns the result of an earlier call of this shape", "FWD-VALUE", kernel=_cached),
    in_square(
        "undeclared_change", "the kernel changes an argument, which is not declared", "FWD-PURE", kernel=_changes
    ),
    in_square("alias", "the kernel returns its argument", REFUSED, kernel=lambda x: x.mul_(1)),
)

IN_KERNELS = (
    in_square(
        "device",
        "the kernel of the CPU has other values",
        "FWD-VALUE",
        options={"reference": torch.square},
        kernels={"cpu": lambda x: x * x + 1},
    ),
    in_square(
        "memory", "the kernel reads memory as if it were contiguous", "FWD-LAYOUT", kernel=lambda x: _contiguous(x) ** 2
    ),
    in_square(
        "empty",
        "backward raises for a tensor without elements",
        "FWD-EMPTY",
        backward=lambda ctx, g: 2 * g * ctx.saved_tensors[0].conj() + 0 * g.reshape(-1)[0],
    ),
    in_square(
        "single",
        "the kernel computes in single precision",
        "FWD-DTYPE/precision",
        kernel=lambda x: (x.to(torch.complex64 if x.is_complex() else torch.float32) ** 2).to(x.dtype),
    ),
    in_square("no_formula", "there is no formula", "VJP-FD", backward=None),
    in_product(
        "missing_gradient",
        "backward returns one gradient for two arguments",
        "VJP-FD",
        backward=_gradients(lambda _, g, __, y: g * y.conj()),
    ),
    in_square(
        "shape",
        "the gradient has another shape",
        "VJP-FD",
        backward=lambda ctx, g: (2 * g * ctx.saved_tensors[0].conj()).sum().reshape(1, 1, 1),
    ),
)
