"""Faults of gradcheck and gradgradcheck."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any
from unittest.mock import patch

import torch
from torch.autograd.gradcheck import GradcheckError

from autograd_conformance.selftests.planted_clauses.definitions import Fix
from autograd_conformance.selftests.planted_clauses.intercept import around_backward, replaced
from autograd_conformance.selftests.planting import Fault

# The name torch.autograd.gradcheck is the function's, not the module's.
MODULE = sys.modules["torch.autograd.gradcheck"]


def _part(name: str, change: Callable[[Any], Any]) -> AbstractContextManager[Any]:
    """A function that gradcheck is made of is ``change(what it was)``."""
    return replaced(MODULE, name, change)


def _gradcheck(change: Callable[[Any, Any, Any, dict[str, Any]], Any]) -> AbstractContextManager[Any]:
    """gradcheck is ``change(original, function, inputs, options)``, where users call it."""

    def changed(original: Any) -> Any:
        return lambda function, inputs, **options: change(original, function, inputs, options)

    return replaced(torch.autograd, "gradcheck", changed)


def _gradgradcheck(change: Callable[[Any, Any, Any, dict[str, Any]], Any]) -> AbstractContextManager[Any]:
    """gradgradcheck is ``change(original, function, inputs, options)``."""

    def changed(original: Any) -> Any:
        return lambda function, inputs, **options: change(original, function, inputs, options)

    return replaced(torch.autograd, "gradgradcheck", changed)


def _close(accepts: Callable[[Any, Any], bool]) -> AbstractContextManager[Any]:
    """An analytical Jacobian is also accepted if ``accepts(it, the numerical one)``."""

    def close(original: Any) -> Any:
        return lambda a, b, rtol, atol: original(a, b, rtol, atol) or accepts(a, b)

    return _part("_allclose_with_type_promotion", close)


def _listed(inputs: Any) -> list[Any]:
    return [inputs] if isinstance(inputs, torch.Tensor) else list(inputs)


def _contiguous(original: Any, function: Any, inputs: Any, options: Any) -> Any:
    return original(
        function, [x.detach().contiguous().requires_grad_(x.requires_grad) for x in _listed(inputs)], **options
    )


def _nothing_to_do(original: Any, function: Any, inputs: Any, options: Any) -> Any:
    return original(function, inputs, **options) if any(x.requires_grad for x in _listed(inputs)) else True


def _silently(original: Any) -> Any:
    def check(*args: Any) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return original(*args)

    return check


def _silently_after_double(original: Any) -> Any:
    """Warnings are given only if the first input is the one in single precision."""
    silent = _silently(original)
    return lambda inputs, *args: (silent if inputs[0].dtype == torch.float64 else original)(inputs, *args)


def _always(**changed: Any) -> Callable[..., Any]:
    def check(original: Any, function: Any, inputs: Any, options: Any) -> Any:
        return original(function, inputs, **{**options, **changed})

    return check


def _first_only(original: Any, function: Any, inputs: Any, options: Any) -> Any:
    wanted = {key: options[key] for key in ("raise_exception", "fast_mode") if key in options}
    return torch.autograd.gradcheck(function, inputs, **wanted)


def _missing_is_zero(original: Any, function: Any, inputs: Any, options: Any) -> Any:
    with _close(lambda a, _: not a.any()):
        return original(function, inputs, **options)


def _any_failure(original: Any) -> Any:
    def check(*args: Any) -> Any:
        try:
            return original(*args)
        except Exception as raised:
            raise GradcheckError("backward cannot handle undefined cotangents") from raised

    return check


def _strict_dtypes(original: Any, function: Any, inputs: Any, options: Any) -> Any:
    """gradcheck that looks at what backward returns."""

    def comparing(run: Any, ctx: Any, *cotangents: Any) -> Any:
        found = run(ctx, *cotangents)
        if any(g is not None and g.dtype != torch.float64 for g in found):
            raise GradcheckError("gradient has dtype mismatch")
        return found

    options = dict(options)
    raising = options.pop("raise_exception", True)
    try:
        with around_backward(comparing) if options.get("check_grad_dtypes") else nullcontext():
            return original(function, inputs, **options)
    except GradcheckError:
        if raising:
            raise
        return False


def _refuses_with_dtypes(original: Any, function: Any, inputs: Any, options: Any) -> Any:
    if options.get("check_grad_dtypes"):
        raise GradcheckError("gradient has dtype mismatch")
    return original(function, inputs, **options)


def _on_differentiable(original: Any, function: Any, inputs: Any, options: Any) -> Any:
    """gradcheck of the outputs that are differentiable, if there are any."""

    def chosen(*given: Any) -> Any:
        outputs = function(*given)
        several = outputs if isinstance(outputs, tuple) else (outputs,)
        return tuple(y for y in several if y.requires_grad) or outputs

    return original(chosen, inputs, **options)


def _of_the_first_output(original: Any, function: Any, inputs: Any, options: Any) -> Any:
    """gradcheck of the first of several outputs, if all are differentiable."""

    def first(*given: Any) -> Any:
        outputs = function(*given)
        several = isinstance(outputs, tuple) and all(y.requires_grad for y in outputs)
        return outputs[0] if several else outputs

    return original(first, inputs, **options)


def _diagonals(original: Any) -> Any:
    def close(a: Any, b: Any, rtol: float, atol: float) -> bool:
        square = a.dim() == 2 and a.shape[0] == a.shape[1]
        return bool(original(a.diagonal(), b.diagonal(), rtol, atol) if square else original(a, b, rtol, atol))

    return close


def _nothing(*_: Any, **__: Any) -> bool:
    return True


FAULTS = (
    Fault("CHECK-01", lambda: _close(lambda a, b: torch.allclose(a.to(b.dtype), 2 * b))),
    Fault(
        "CHECK-01",
        lambda: _close(lambda a, b: torch.allclose(a.to(b.dtype).abs(), b.abs())),
        neighbours=("CHECK-06", "CHECK-07"),
        words="gradcheck does not compare signs",
    ),
    Fault(
        "CHECK-01",
        lambda: patch.object(torch.autograd, "gradcheck", lambda f, x, **options: True),
        neighbours=tuple(f"CHECK-0{n}" for n in (2, 3, 6)),
        words="gradcheck is always satisfied",
    ),
    Fault(
        "CHECK-01",
        lambda: _gradcheck(_of_the_first_output),
        neighbours=tuple(f"CHECK-0{n}" for n in (3, 5, 6)),
        words="gradcheck looks at the first output alone",
    ),
    Fault(
        "CHECK-01",
        lambda: _close(lambda a, b: torch.allclose(a.reshape(-1)[:1].to(b.dtype), b.reshape(-1)[:1])),
        neighbours=("CHECK-07", "CHECK-08"),
        words="gradcheck compares the first entry alone",
    ),
    Fault(
        "CHECK-01",
        lambda: _part("_allclose_with_type_promotion", _diagonals),
        words="gradcheck compares diagonals of square Jacobians",
    ),
    Fault("CHECK-02", lambda: _gradcheck(_contiguous), says=("overlaps",)),
    Fault("CHECK-02", lambda: _gradcheck(_nothing_to_do), says=("tracked",), words="gradcheck passes constants"),
    Fault("CHECK-02", lambda: _part("_check_inputs", _silently), says=("precision",), words="gradcheck never warns"),
    Fault(
        "CHECK-02",
        lambda: _part("_check_inputs", _silently_after_double),
        says=("precision",),
        words="gradcheck warns of the first input alone",
    ),
    Fault("CHECK-03", lambda: _part("_check_jacobians_equal", lambda _: _nothing), says=("varies",)),
    Fault(
        "CHECK-03",
        lambda: _part("_test_backward_mul_by_grad_output", lambda _: _nothing),
        says=("ignores its cotangent",),
        words="gradcheck does not try a cotangent of zeros",
    ),
    Fault(
        "CHECK-03",
        lambda: _close(lambda a, _: not a.any()),
        says=("lacks a gradient",),
        neighbours=("CHECK-01", "CHECK-06", "CHECK-08"),
        words="gradcheck leaves out gradients that are missing",
    ),
    Fault(
        "CHECK-03",
        lambda: _gradcheck(_always(check_undefined_grad=False)),
        says=("undefined",),
        neighbours=("CHECK-04",),
        words="gradcheck never tries undefined cotangents",
    ),
    Fault(
        "CHECK-04",
        lambda: _part("_test_undefined_backward_mode", lambda _: _nothing),
        says=("no error, but the result True",),
        neighbours=("CHECK-03",),
    ),
    Fault("CHECK-05", lambda: _gradcheck(_refuses_with_dtypes)),
    Fault("CHECK-06", lambda: _part("_check_no_differentiable_outputs", lambda _: _nothing)),
    Fault("CHECK-07", lambda: _gradgradcheck(_first_only), neighbours=("CHECK-08",)),
    Fault(
        "CHECK-07",
        lambda: _gradgradcheck(_always(check_fwd_over_rev=False, check_rev_over_rev=True)),
        words="gradgradcheck ignores check_fwd_over_rev",
    ),
    Fault(
        "CHECK-07",
        lambda: _gradgradcheck(_always(gen_non_contig_grad_outputs=False)),
        says=("contiguous",),
        words="gradgradcheck ignores gen_non_contig_grad_outputs",
    ),
    Fault(
        "CHECK-07",
        lambda: _gradgradcheck(_always(check_batched_grad=False)),
        says=("batched",),
        words="gradgradcheck ignores check_batched_grad",
    ),
    Fault("CHECK-08", lambda: _gradgradcheck(_missing_is_zero)),
)

FIXES = (
    Fix("CHECK-04", lambda: _part("_test_undefined_backward_mode", _any_failure)),
    Fix("CHECK-05", lambda: _gradcheck(_strict_dtypes), variant="other"),
    Fix("CHECK-06", lambda: _gradcheck(_on_differentiable), variant="integers"),
    Fix("CHECK-06", lambda: _gradcheck(_on_differentiable), variant="marked"),
)
