"""Systematic errors in half precision; rounding, and even truncation, is right."""

from __future__ import annotations

import torch

from autograd_conformance.selftests.check.specimens import right, wrong
from autograd_conformance.selftests.check.specimens.functions import HALF, function
from autograd_conformance.suites.declared import claims

ONE, ROWS = "float[...]", "float[b,n]"


def _softmax(g, y, _):
    return y * (g - (g * y).sum(-1, keepdim=True))


BASES = {
    "square": (lambda x: x * x, lambda g, _, x: 2 * g * x, ONE),
    "tanh": (torch.tanh, lambda g, y, _: g * (1 - y * y), ONE),
    "softmax": (lambda x: x.softmax(-1), _softmax, ROWS),
}


def _last(value):
    changed = value.clone()
    if changed.ndim:
        changed[-1] *= 1.1
    return changed


FAULTS = {
    "bfloat16, 2 per cent more": ("bfloat16", lambda v: (v.double() * 1.02).to(v.dtype)),
    "bfloat16, 2 per cent less": ("bfloat16", lambda v: (v.double() * 0.98).to(v.dtype)),
    "float16, 0.3 per cent more": ("float16", lambda v: (v.double() * 1.003).to(v.dtype)),
    "bfloat16, a bias": ("bfloat16", lambda v: v + 0.1),
    "float16, a bias": ("float16", lambda v: v + 0.01),
    "bfloat16, the last row": ("bfloat16", _last),
    "float16, the last row": ("float16", _last),
    "bfloat16, positive ones": ("bfloat16", lambda v: torch.where(v > 0, v * 1.05, v)),
}


def _in(dtype, change, compute):
    def changed(*given):
        found = compute(*given)
        return change(found) if found.dtype is HALF[dtype] else found

    return changed


class Truncated:
    """Numbers with which every operation is rounded towards zero."""

    def __init__(self, value, dtype):
        if dtype not in HALF.values():
            self.value = value
        else:
            near = value.to(dtype)
            bits = near.view(torch.int16)
            self.value = torch.where(near.double().abs() > value.abs(), bits - 1, bits).view(dtype).double()
        self.dtype = dtype

    def of(self, value):
        return Truncated(value, self.dtype)

    def __add__(self, other):
        return self.of(self.value + _value(other))

    def __sub__(self, other):
        return self.of(self.value - _value(other))

    def __rsub__(self, other):
        return self.of(_value(other) - self.value)

    def __mul__(self, other):
        return self.of(self.value * _value(other))

    def __truediv__(self, other):
        return self.of(self.value / _value(other))

    __radd__, __rmul__ = __add__, __mul__

    def sum(self):
        total = self.of(self.value[..., :1])
        for number in range(1, self.value.shape[-1]):
            total = total + self.of(self.value[..., number : number + 1])
        return total


def _value(x):
    return x.value if isinstance(x, Truncated) else x


def _truncating(forward, gradient):
    def load(x):
        return Truncated(x.double() if x.dtype in HALF.values() else x, x.dtype)

    def back(g, y, x):
        return gradient(load(g), load(y), load(x)).value.to(x.dtype)

    return function(lambda x: forward(load(x)).value.to(x.dtype), back)


def _power(x, n):
    found = x
    for _ in range(n - 1):
        found = found * x
    return found


def _exp(x):
    return x.of(x.value.exp())


def _exp_shares(x):
    return _exp(x) / _exp(x).sum()


def _tanh(x):
    return x.of(x.value.tanh())


TRUNCATING = {
    "square": (lambda x: x * x, lambda g, _, x: 2 * (g * x), ONE),
    "tanh": (_tanh, lambda g, y, _: g * (1 - y * y), ONE),
    "fifth power": (lambda x: _power(x, 5), lambda g, _, x: 5 * (g * _power(x, 4)), ONE),
    "seventh power": (lambda x: _power(x, 7), lambda g, _, x: 7 * (g * _power(x, 6)), ONE),
    "softmax": (_exp_shares, lambda g, y, _: y * (g - (g * y).sum()), ROWS),
    "mean of positive": (
        lambda x: x.sum() / x.value.shape[-1],
        lambda g, _, x: g / x.value.shape[-1] + 0 * x,
        "float[n] positive",
    ),
}
RIGHT = {
    "gelu, written out": (lambda x: 0.5 * x * (1 + torch.tanh(0.79788456 * (x + 0.044715 * x**3))), ONE),
    "logarithm of a sum": (lambda x: x.exp().sum(-1).log(), ROWS),
    "one more than needed": (lambda x: x.exp() - 1, ONE),
    "large phase": (lambda x: torch.sin(50 * x), ONE),
    "a fraction, which jumps": (lambda x: (10 * x) % 1.0, ONE),
    "steps": (lambda x: torch.round(3 * x) / 3, ONE),
    "rounded constants": (lambda x: x * x.new_tensor(0.1) * x.new_tensor(0.3) * x.new_tensor(0.7), ONE),
    "the largest": (lambda x: x.topk(1, -1).values, ROWS),
    "sums in half precision": (lambda x: sum(x.unbind(-1)), ROWS),
}


def _root_mean_square(x):
    return x * (x.square().mean(-1, keepdim=True) + 1e-5).rsqrt()


def _of_root_mean_square(g, y, x):
    rate = (x.square().mean(-1, keepdim=True) + 1e-5).rsqrt()
    return rate * (g - y * (g * y).mean(-1, keepdim=True))


def _through_double(x):
    return torch.from_numpy(_root_mean_square(x.detach().double()).numpy()).to(x.dtype)


TESTS = " ".join(claim.test for claim, _ in claims().values() if claim.variant == "averages")
SPECIMENS = (
    *(
        wrong(
            f"{fault}, of {base}", "VJP-REF/averages", function(forward, _in(dtype, change, gradient)), argument,
            tests=TESTS, says="on average over 32 calls",
        )
        for fault, (dtype, change) in FAULTS.items()
        for base, (forward, gradient, argument) in BASES.items()
    ),
    *(
        wrong(
            f"{fault}, of an output", "FWD-VALUE/averages",
            function(_in(dtype, change, torch.sin), lambda g, _, x: g * x.cos()), ONE, tests=TESTS,
        )
        for fault, (dtype, change) in FAULTS.items()
    ),
    *(
        right(f"{name}, truncating", TESTS, _truncating(forward, gradient), argument)
        for name, (forward, gradient, argument) in TRUNCATING.items()
    ),
    *(right(name, TESTS, f, argument) for name, (f, argument) in RIGHT.items()),
    # With one entry in a row, nothing but the epsilon keeps the gradient from being 0.
    *(
        right(name, TESTS, function(forward, _of_root_mean_square), ROWS, sizes={"n": (1, 2)}, once=True, decided=False)
        for name, forward in (("terms that cancel", _root_mean_square), ("unseen terms that cancel", _through_double))
    ),
)  # fmt: skip
