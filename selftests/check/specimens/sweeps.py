"""Functions of single entries: what is wrong at some numbers of a 16-bit dtype, and what is not."""

from __future__ import annotations

import numpy as np
import torch
from torch.nn import functional

from autograd_conformance.selftests.check.specimens import right, wrong
from autograd_conformance.selftests.check.specimens.functions import HALF, function, in_single, opaque, wide

ONE, POSITIVE = ("float[...]",), ("float[n] positive",)
FOUND = ("VJP-FINITE/sweep", "VJP-REF/sweep", "VJP-FD/sweep")


def _of_hardswish(g, _, x):
    return g * torch.where(x < -3, 0, torch.where(x <= 3, x / 3 + 0.5, x / 3))


def _exp_to_six(g, y, x):
    return g * (torch.where(x > 6, y / 2, y) if x.dtype is torch.float16 else y)


def _spoiled(at):
    return lambda g, _, x: 3 * g * torch.where(at(x), torch.nan, 1)


WRONG = {
    "relu6, open above": ("VJP-FD", functional.relu6, lambda g, _, x: g * (x > 0), ONE),
    "clamp at ten, open": ("VJP-FD", lambda x: x.clamp(-10, 10), lambda g, _, x: g * torch.ones_like(x), ONE),
    "hardswish, straight above": ("VJP-FD", functional.hardswish, _of_hardswish, ONE),
    "a threshold of eight": (
        "VJP-FD",
        functional.softplus,
        lambda g, _, x: g * torch.where(x > 8, 0, torch.sigmoid(x)),
        ONE,
    ),
    "log1p up to a thousand": ("VJP-FD", torch.log1p, lambda g, _, x: g / (1 + x) * (x < 1000), POSITIVE),
    "a root whose square overflows": ("VJP-REF", torch.sqrt, lambda g, y, x: 0.5 * g * x / (x * x) * y, POSITIVE),
    "asinh whose fourth power overflows": (
        "VJP-REF",
        torch.asinh,
        lambda g, _, x: g * x.abs() / (x * x * (1 + x * x)).sqrt(),
        ("float[...] nonzero",),
    ),
    "the sign of an output that underflows": (
        "VJP-REF",
        lambda x: functional.leaky_relu(x, 0.01),
        lambda g, y, _: g * torch.where(y < 0, 0.01, 1.0).to(g.dtype),
        ONE,
    ),
    "half of exp above six in float16": ("VJP-REF", torch.exp, _exp_to_six, ONE),
    "a root whose cube overflows": (
        "VJP-FINITE",
        torch.sqrt,
        lambda g, y, x: 0.5 * g * y * (x * x) / (x * x * x),
        POSITIVE,
    ),
    "rsqrt whose cube overflows": (
        "VJP-FINITE",
        torch.rsqrt,
        lambda g, y, x: -0.5 * g * y * (x * x) / (x * x * x),
        POSITIVE,
    ),
    "atan whose fourth power overflows": (
        "VJP-FINITE",
        torch.atan,
        lambda g, _, x: g * x * x / (x * x + x**4),
        ("float[...] nonzero",),
    ),
    "a guard in forward alone": (
        "VJP-FD",
        lambda x: torch.sinc((x - 7) / torch.pi),
        lambda g, _, x: g * (torch.cos(x - 7) / (x - 7) - torch.sin(x - 7) / (x - 7) ** 2),
        ONE,
    ),
    "NaN at negative zero": ("VJP-FINITE", lambda x: 3 * x, _spoiled(lambda x: 1 / x == -torch.inf), ONE),
    "NaN at one number": ("VJP-FINITE", lambda x: 3 * x, _spoiled(lambda x: x == 1234), ONE),
    "NaN below the normal numbers": (
        "VJP-FINITE",
        lambda x: 3 * x,
        _spoiled(lambda x: (x != 0) & (x.abs() < torch.finfo(x.dtype).tiny)),
        ONE,
    ),
}


def _truncated(y, x):
    """The number next to zero of those that a 16-bit dtype has on both sides."""
    near = y.to(x.dtype)
    if near.dtype not in HALF.values():
        return near
    bits = near.view(torch.int16)
    return torch.where(near.double().abs() > y.double().abs(), bits - 1, bits).view(near.dtype)


RIGHT = {
    "relu6": (function(functional.relu6, lambda g, _, x: g * ((x > 0) & (x < 6))), ONE),
    "a fraction": (lambda x: x % 1.0, ONE),
    "steps": (lambda x: torch.round(3 * x) / 3, ONE),
    "a large phase": (function(torch.sin, lambda g, _, x: g * x.cos()), ONE),
    "tan": (function(torch.tan, lambda g, y, _: g * (1 + y * y)), ONE),
    "a threshold": (
        function(functional.softplus, lambda g, _, x: g * torch.where(x > 20, 1, torch.sigmoid(x))),
        ONE,
    ),
    "sigmoid from its output": (function(torch.sigmoid, lambda g, y, _: g * y * (1 - y)), ONE),
    "tanh from its output": (function(torch.tanh, lambda g, y, _: g * (1 - y * y)), ONE),
    "logit": (
        function(lambda x: torch.log(x) - torch.log1p(-x), lambda g, _, x: g / (x * (1 - x))),
        ("float[n] unit",),
    ),
    "acosh": (torch.acosh, ("float[n](1..5)",)),
    "a cube root": (
        function(lambda x: x.sign() * x.abs() ** (1 / 3), lambda g, _, x: g / (3 * x.abs() ** (2 / 3))),
        ("float[n] nonzero",),
    ),
    "one more than needed": (lambda x: x.exp() - 1, ONE),
    "a thousand there and back": (lambda x: (x + 1000) - 1000, ONE),
    "powers": (lambda x, n: x**n, (*ONE, "2 | 3 | 5")),
    "large factor": (function(lambda x: x * 1e5, lambda g, *_: g * 1e5), ONE),
    "small factor": (function(lambda x: x * 1e-6, lambda g, *_: g * 1e-6), ONE),
    "computed in single precision": (
        function(in_single(torch.tanh), in_single(lambda g, _, x: g * (1 - x.tanh() ** 2))),
        ONE,
    ),
    "truncating": (
        function(
            lambda x: _truncated(wide(x).atan(), x),
            lambda g, _, x: _truncated(wide(g) / (1 + wide(x) ** 2), x),
        ),
        ONE,
    ),
    "silu with NumPy": (
        function(
            opaque(lambda x: x / (1 + np.exp(-x))),
            lambda g, _, x: g * torch.sigmoid(x) * (1 + x * (1 - torch.sigmoid(x))),
        ),
        ONE,
    ),
    "smooth step": (
        function(
            lambda x: x.clamp(0, 1) ** 2 * (3 - 2 * x.clamp(0, 1)),
            lambda g, _, x: g * 6 * x.clamp(0, 1) * (1 - x.clamp(0, 1)),
        ),
        ONE,
    ),
}


SPECIMENS = (
    *(
        wrong(name, f"{property_id}/sweep", function(forward, gradient), *arguments, says="specials=((0, ")
        for name, (property_id, forward, gradient, arguments) in WRONG.items()
    ),
    *(right(name, " ".join(FOUND), f, *arguments) for name, (f, arguments) in RIGHT.items()),
)
