"""Planted faults in what torch is told of an operator beside its formula: arguments, rules for batches, fakes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch

from autograd_conformance.selftests.faults.operators import REFUSED, Operator, of
from autograd_conformance.selftests.faults.operators.formulas import ONE, TWO, in_square, ones, saving, twos, vector

_FIRST: dict[str, float] = {}

COLUMNS = Operator(
    schema="(Tensor x) -> Tensor",
    kernel=lambda x: (2 * x).mT.contiguous().mT,
    fake=lambda x: torch.empty(x.mT.shape, dtype=x.dtype, device=x.device).mT,
    backward=lambda _, g: 2 * g,
)


def _matrix() -> list[tuple[Any, ...]]:
    return [(vector(2, 3),), (vector(3, 4),)]


DOUBLE = replace(COLUMNS, kernel=lambda x: 2 * x, fake=torch.empty_like)
in_columns = of(COLUMNS, ("float[n,m]",), _matrix)
COMPILED = {"also": "compile"}

IN_FAKES = (
    in_columns(
        "fake_shape",
        "the fake kernel has another shape",
        "ENV-DEVICE/fake",
        options=COMPILED,
        fake=lambda x: x.new_empty(x.shape[0]),
    ),
    in_columns(
        "fake_dtype",
        "the fake kernel has another dtype",
        "ENV-DEVICE/fake",
        options=COMPILED,
        fake=lambda x: torch.empty_like(x, dtype=torch.float16),
    ),
    in_columns(
        "fake_strides",
        "the fake kernel has other strides",
        "ENV-DEVICE/fake",
        options=COMPILED,
        fake=lambda x: torch.empty(x.shape, dtype=x.dtype, device=x.device),
    ),
    of(DOUBLE, ("float[n,m]",), _matrix)(
        "fake_order",
        "the fake kernel takes its argument to be contiguous",
        "ENV-DEVICE/fake",
        fake=lambda x: torch.empty(x.shape, dtype=x.dtype, device=x.device),
    ),
    in_columns("no_fake", "there is no fake kernel", "ENV-COMPILE", options=COMPILED, fake=None),
    in_square(
        "numpy_backward",
        "backward computes with NumPy, which cannot be traced",
        "ENV-COMPILE",
        options={**COMPILED, "dtypes": "float64", "once": True},
        backward=lambda ctx, g: torch.from_numpy(2 * g.numpy(force=True) * ctx.saved_tensors[0].numpy(force=True)),
    ),
)


def _sums(info: Any, in_dims: Any, x: Any) -> Any:
    """The right rule of a sum over the last dimension."""
    return x.movedim(in_dims[0], 0).sum(-1), 0


SUM = Operator(
    schema="(Tensor x) -> Tensor",
    kernel=lambda x: x.sum(-1),
    fake=lambda x: x.new_empty(x.shape[:-1]),
    setup_context=lambda ctx, inputs, output: setattr(ctx, "size", inputs[0].shape[-1]),
    backward=lambda ctx, g: g.unsqueeze(-1).expand(*g.shape, ctx.size),
    vmap=_sums,
)
in_sum = of(SUM, ("float[n,m]",), _matrix)
BATCHED = {"also": "vmap"}

IN_BATCHES = (
    in_sum(
        "batch_axis",
        "the rule for batches takes the first axis for the batch's",
        "BATCH-VMAP",
        options=BATCHED,
        vmap=lambda _info, _dims, x: (x.sum(-1), 0),
    ),
    in_sum(
        "batch_out",
        "the rule for batches names the wrong axis of its output",
        "BATCH-VMAP",
        options=BATCHED,
        vmap=lambda _info, in_dims, x: (x.movedim(in_dims[0], 0).sum(-1), 1),
    ),
    in_sum(
        "batch_values",
        "the rule for batches has other values",
        "BATCH-VMAP",
        options=BATCHED,
        vmap=lambda _info, in_dims, x: (2 * x.movedim(in_dims[0], 0).sum(-1), 0),
    ),
)


def _keeping(ctx: Any, inputs: Any, keyword_only_inputs: Any, output: Any) -> None:
    ctx.save_for_backward(*inputs)
    ctx.k = keyword_only_inputs["k"]


POWER = Operator(
    schema="(Tensor x, *, int k=2) -> Tensor",
    kernel=lambda x, *, k=2: x**k,
    fake=lambda x, *, k=2: torch.empty_like(x),
    setup_context=_keeping,
    backward=lambda ctx, g: ctx.k * g * (ctx.saved_tensors[0] ** (ctx.k - 1)).conj(),
)
in_power = of(POWER, (*ONE, "1 | 2 | 3"), ones, lambda op: lambda x, k: op(x, k=k))

LIST = Operator(
    schema="(Tensor[] xs) -> Tensor",
    kernel=lambda xs: xs[0] * xs[1] ** 2,
    fake=lambda xs: torch.empty_like(xs[0]),
    setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs[0]),
    backward=lambda ctx, g: [
        g * (ctx.saved_tensors[1] ** 2).conj(),
        g * (2 * ctx.saved_tensors[0] * ctx.saved_tensors[1]).conj(),
    ],
)
in_list = of(LIST, TWO, lambda: [(list(xs),) for xs in twos()], lambda op: lambda x, y: op([x, y]))


def _optional(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.given = inputs[1] is not None


OPTIONAL = Operator(
    schema="(Tensor x, Tensor? bias=None) -> Tensor",
    kernel=lambda x, bias=None: 2 * x if bias is None else 2 * x + bias,
    fake=lambda x, bias=None: torch.empty_like(x),
    setup_context=_optional,
    backward=lambda ctx, g: (2 * g, g.clone() if ctx.given else None),
)
in_optional = of(OPTIONAL, (*ONE, "float[n]?"), lambda: [*twos(), *ones()])


def _unused(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.set_materialize_grads(False)
    ctx.save_for_backward(*inputs)


TWO_OUTPUTS = Operator(
    schema="(Tensor x) -> (Tensor, Tensor)",
    kernel=lambda x: (2 * x, x * x),
    fake=lambda x: (torch.empty_like(x), torch.empty_like(x)),
    setup_context=saving,
    backward=lambda ctx, g, h: 2 * g + 2 * h * ctx.saved_tensors[0].conj(),
)
in_outputs = of(TWO_OUTPUTS, ONE, ones)

SCALED = Operator(
    schema="(Tensor x, float k) -> Tensor",
    kernel=lambda x, k: x * k,
    fake=lambda x, k: torch.empty_like(x),
    setup_context=lambda ctx, inputs, output: setattr(ctx, "k", inputs[1]),
    backward=lambda ctx, g: (g * ctx.k, None),
)
in_scaled = of(SCALED, (*ONE, "float(0.5..3)"), lambda: [(vector(3), 3.14), (vector(2, 3), 1.5)])


def _unpacked(ctx: Any, inputs: Any, output: Any) -> None:
    """As the example of opcheck's documentation has it, which has two inputs."""
    (y,) = inputs
    ctx.k = y


IN_ARGUMENTS = (
    in_power(
        "keyword",
        "backward ignores a keyword-only argument",
        "VJP-FD",
        backward=lambda ctx, g: 2 * g * ctx.saved_tensors[0].conj(),
    ),
    in_list(
        "list",
        "the gradients of a list are in the wrong order",
        "VJP-FD",
        backward=lambda ctx, g: LIST.backward(ctx, g)[::-1],
    ),
    in_optional(
        "none",
        "the gradient is wrong where an optional tensor is None",
        "VJP-FD",
        backward=lambda ctx, g: ((2 if ctx.given else 1) * g, g.clone() if ctx.given else None),
    ),
    in_optional(
        "absent_bias",
        "backward gives no gradient for an optional tensor",
        "VJP-FD",
        backward=lambda _, g: (2 * g, None),
    ),
    in_outputs(
        "unused_output", "backward takes a cotangent for granted that may be None", "VJP-UNUSED", setup_context=_unused
    ),
    in_scaled(
        "example",
        "setup_context unpacks one of two inputs, as in the example of opcheck",
        REFUSED,
        setup_context=_unpacked,
    ),
    in_scaled(
        "default",
        "backward has the number of the first call",
        "VJP-FD",
        backward=lambda ctx, g: (g * _FIRST.setdefault("k", ctx.k), None),
    ),
)
