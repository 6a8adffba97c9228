"""Faults of gradcheck and gradgradcheck."""

from __future__ import annotations

import sys
from contextlib import nullcontext

import torch
from torch.autograd.gradcheck import GradcheckError

from autograd_conformance.selftests.faults import plants
from autograd_conformance.selftests.faults.clauses.definitions import Fix
from autograd_conformance.selftests.faults.planting import fault
from autograd_conformance.selftests.faults.plants import options, tupled

# The name torch.autograd.gradcheck is the function's, not the module's.
MODULE = sys.modules["torch.autograd.gradcheck"]


def _part(name, method):
    """A function that gradcheck is made of is ``method(original, *args)``."""
    return plants.wrapped(MODULE, name, method)


def _nothing(name):
    """A function that gradcheck is made of is satisfied with anything."""
    return plants.put(MODULE, name, lambda *_, **__: True)


def _gradcheck(method):
    """gradcheck is ``method(original, function, inputs, **options)``, where users call it."""
    return plants.wrapped(torch.autograd, "gradcheck", method)


def _gradgradcheck(method):
    return plants.wrapped(torch.autograd, "gradgradcheck", method)


def _close(accepts):
    """An analytical Jacobian is also accepted if ``accepts(it, the numerical one)``."""
    name = "_allclose_with_type_promotion"
    return _part(name, lambda original, a, b, rtol, atol: original(a, b, rtol, atol) or accepts(a, b))


def _listed(inputs):
    return [inputs] if isinstance(inputs, torch.Tensor) else list(inputs)


def _contiguous(original, function, inputs, **given):
    copies = [x.detach().contiguous().requires_grad_(x.requires_grad) for x in _listed(inputs)]
    return original(function, copies, **given)


def _first_only(_, function, inputs, **given):
    wanted = {key: given[key] for key in ("raise_exception", "fast_mode") if key in given}
    return torch.autograd.gradcheck(function, inputs, **wanted)


def _any_failure(original, *args):
    try:
        return original(*args)
    except Exception as raised:
        raise GradcheckError("backward cannot handle undefined cotangents") from raised


_COMPARES_DTYPES = plants.around_backward(
    plants.refused(
        lambda found, *_: any(g is not None and g.dtype != torch.float64 for g in found),
        "gradient has dtype mismatch",
        GradcheckError,
    )
)


def _strict_dtypes(original, function, inputs, raise_exception=True, **given):
    """gradcheck that looks at what backward returns."""
    try:
        with _COMPARES_DTYPES() if given.get("check_grad_dtypes") else nullcontext():
            return original(function, inputs, **given)
    except GradcheckError:
        if raise_exception:
            raise
        return False


def _refuses_with_dtypes(original, function, inputs, **given):
    if given.get("check_grad_dtypes"):
        raise GradcheckError("gradient has dtype mismatch")
    return original(function, inputs, **given)


def _of_outputs(change):
    """gradcheck looks at ``change(the outputs)``."""
    return _gradcheck(
        lambda original, function, inputs, **given: original(lambda *args: change(function(*args)), inputs, **given)
    )


def _differentiable(outputs):
    return tuple(y for y in tupled(outputs) if y.requires_grad) or outputs


def _the_first(outputs):
    return outputs[0] if isinstance(outputs, tuple) and all(y.requires_grad for y in outputs) else outputs


def _diagonals(original, a, b, rtol, atol):
    square = a.dim() == 2 and a.shape[0] == a.shape[1]
    return bool(original(a.diagonal(), b.diagonal(), rtol, atol) if square else original(a, b, rtol, atol))


_SILENT = plants.under(plants.silence)

FAULTS = (
    fault("CHECK-01", _close(lambda a, b: torch.allclose(a.to(b.dtype), 2 * b))),
    fault(
        "CHECK-01: gradcheck does not compare signs",
        _close(lambda a, b: torch.allclose(a.to(b.dtype).abs(), b.abs())),
        neighbours=("CHECK-06", "CHECK-07"),
    ),
    fault(
        "CHECK-01: gradcheck is always satisfied",
        plants.put(torch.autograd, "gradcheck", lambda *_, **__: True),
        neighbours=plants.numbers("CHECK", 2, 3, 6),
    ),
    fault(
        "CHECK-01: gradcheck looks at the first output alone",
        _of_outputs(_the_first),
        neighbours=plants.numbers("CHECK", 3, 5, 6),
    ),
    fault(
        "CHECK-01: gradcheck compares the first entry alone",
        _close(lambda a, b: torch.allclose(a.reshape(-1)[:1].to(b.dtype), b.reshape(-1)[:1])),
        neighbours=("CHECK-07", "CHECK-08"),
    ),
    fault(
        "CHECK-01: gradcheck compares diagonals of square Jacobians", _part("_allclose_with_type_promotion", _diagonals)
    ),
    fault("CHECK-02", _gradcheck(_contiguous), "overlaps"),
    fault(
        "CHECK-02: gradcheck passes constants",
        _gradcheck(
            plants.where(lambda _, inputs: not any(x.requires_grad for x in _listed(inputs)), lambda *_, **__: True)
        ),
        "tracked",
    ),
    fault("CHECK-02: gradcheck never warns", _part("_check_inputs", _SILENT), "precision"),
    fault(
        "CHECK-02: gradcheck warns of the first input alone",
        _part("_check_inputs", plants.where(lambda inputs, *_: inputs[0].dtype == torch.float64, _SILENT)),
        "precision",
    ),
    fault("CHECK-03", _nothing("_check_jacobians_equal"), "varies"),
    fault(
        "CHECK-03: gradcheck does not try a cotangent of zeros",
        _nothing("_test_backward_mul_by_grad_output"),
        "ignores its cotangent",
    ),
    fault(
        "CHECK-03: gradcheck leaves out gradients that are missing",
        _close(lambda a, _: not a.any()),
        "lacks a gradient",
        neighbours=plants.numbers("CHECK", 1, 6, 8),
    ),
    fault(
        "CHECK-03: gradcheck never tries undefined cotangents",
        _gradcheck(options(check_undefined_grad=False)),
        "undefined",
        neighbours=("CHECK-04",),
    ),
    fault(
        "CHECK-04", _nothing("_test_undefined_backward_mode"), "no error, but the result True", neighbours=("CHECK-03",)
    ),
    fault("CHECK-05", _gradcheck(_refuses_with_dtypes)),
    fault("CHECK-06", _nothing("_check_no_differentiable_outputs")),
    fault("CHECK-07", _gradgradcheck(_first_only), neighbours=("CHECK-08",)),
    fault("CHECK-08", _gradgradcheck(plants.under(_close(lambda a, _: not a.any())))),
)

FIXES = (
    Fix("CHECK-04", _part("_test_undefined_backward_mode", _any_failure)),
    Fix("CHECK-05", _gradcheck(_strict_dtypes), variant="other"),
    Fix("CHECK-06", _of_outputs(_differentiable), variant="integers"),
    Fix("CHECK-06", _of_outputs(_differentiable), variant="marked"),
)
