"""What a wrong call is right with, such as another length or value, where that tells something."""

from __future__ import annotations

import torch

from autograd_conformance.selftests.check.specimens import right, seeded, wrong
from autograd_conformance.selftests.check.specimens.functions import custom, function

ONE, MATRIX, ANY = ("float[n]",), ("float[n,m]",), ("float[...]",)

# A right Function, whose backward each fault overrides.
POWERS = ("float[...]", "float[...]", "int(0..4)")


def power_gradients(ctx, g):
    x, w = ctx.saved_tensors
    return g * w * ctx.p * x ** (ctx.p - 1) if ctx.p else torch.zeros_like(x), g * x**ctx.p, None


def _power(ctx, x, w, p):
    ctx.save_for_backward(x, w)
    ctx.p = p
    return w * x**p


def power(backward=power_gradients, name="Power"):
    """w * x**p, with that backward."""
    return custom(name, forward=_power, backward=backward)


def _doubled(ctx, g):
    found, other, _ = power_gradients(ctx, g)
    return 2 * found, other, None


def _softmax(ctx, x):
    ctx.y = x.softmax(-1)
    return ctx.y.clone()


def _halves_what_is_saved(ctx, g):
    """This shows wherever the gradient is not 0."""
    y = ctx.y
    ctx.y = y / 2
    return y * (g - (g * y).sum(-1, keepdim=True))


def _parts_of_64(g, *_):
    """What is carried from one block to the one before is lost."""
    return torch.cat([part.flip(-1).cumsum(-1).flip(-1) for part in g.split(64, -1)], -1)


class AlongGiven(torch.autograd.Function):
    """Softmax along a dimension. The rule for batches does not move the dimension."""

    @staticmethod
    def forward(x, dim):
        return x.softmax(dim)

    @staticmethod
    def setup_context(ctx, inputs, y):
        ctx.dim = inputs[1]
        ctx.save_for_backward(y)

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return y * (g - (g * y).sum(ctx.dim, keepdim=True)), None

    @staticmethod
    def vmap(_, in_dims, x, dim):
        return AlongGiven.apply(x.movedim(in_dims[0], 0), dim), 0


def _drawn(x, p):
    """Rows that are kept or left out by chance."""
    return x * (torch.rand(x.shape[0], 1, dtype=x.dtype) > p)


def _reduced(x, how):
    return {"mean": torch.mean, "sum": torch.sum, "none": torch.clone}[how](x * x)


def _of_log_softmax(g, y, _, axis):
    """A negative axis is off by one, which is right by accident for some axes of some ranks."""
    return g - torch.exp(y) * g.sum(axis if axis >= 0 else max(axis + y.dim() - 1, 0), keepdim=True), None


LOG_SOFTMAX = function(lambda x, axis: torch.log_softmax(x, axis), _of_log_softmax)


def _of_huber(g, _, x, delta):
    return g * torch.where(x.abs() <= delta, x, torch.full_like(x, delta)), None


def _pair(ctx, x):
    ctx.save_for_backward(x)
    return x.sin(), 3 * x


def _of_shifted(g, _, x, w, b):
    return (g * w, g * x, None) if b is None else (2 * g * w, g * x, g)


def _lost_for_large(g, _, x):
    """The gradient of a sum of rows, which is wrong for 5 rows of 2 and larger ones."""
    return g[:, None].expand_as(x) * (1.01 if x.shape[0] >= 5 and x.shape[1] >= 2 else 1.0)


def scan(x, a, h0):
    """a * h0 + x[0], a * (a * h0 + x[0]) + x[1], ..."""
    h, out = h0, []
    for row in x:
        h = a * h + row
        out.append(h)
    return torch.stack(out)


def _of_scan(g, y, _, a, h0):
    """A shortcut for sequences of length 1 forgets a."""
    if g.shape[0] == 1:
        return g, g[0] * h0, g[0]
    rows, ga, carry = [], torch.zeros_like(a), torch.zeros_like(a)
    for t in range(g.shape[0] - 1, -1, -1):
        carry = carry + g[t]
        rows.append(carry)
        ga = ga + carry * (y[t - 1] if t else h0)
        carry = a * carry
    return torch.stack(rows[::-1]), ga, carry


def _of_scan_wrong(g, *saved):
    """The last gradient is wrong for every length."""
    gx, ga, gh = _of_scan(g, *saved)
    return gx, ga, 2 * gh


PICKED = ("float[n]", "int[e](0..n-1)")
SCANNED = ("float[t,n]", "float[n]", "float[n]")


def _row(name, heads, f, *arguments, words, seed=0, exactly=(), **options):
    """A fault that is right with ``words``."""
    exactly = {"right_with": words, **dict(exactly)}
    return wrong(name, heads, f, *arguments, seed=seed, shrink=True, exactly=exactly, **options)


def _picked(gradient):
    """x[i] with that gradient of x."""
    return function(lambda x, i: x[i], lambda g, _, x, i: (gradient(torch.zeros_like(x), i, g), None))


SPECIMENS = (
    # Of the gradients of an index that comes twice one is kept.
    _row(
        "different indices",
        "VJP-FD",
        _picked(lambda zeros, i, g: zeros.index_put((i,), g)),
        *PICKED,
        once=True,
        words="all values of argument 1 (i) different",
        exactly={"values": "argument 1 (i) = [0, 0]"},
    ),
    # The same, where an argument is left out.
    _row(
        "different indices without weights",
        "VJP-FD",
        function(
            lambda x, i, w: x[i] if w is None else x[i] * w,
            lambda g, _, x, i, w: (torch.zeros_like(x).index_put((i,), g if w is None else g * w), None, None),
        ),
        *PICKED,
        "float[e]? constant",
        once=True,
        words="all values of argument 1 (i) different",
        exactly={"values": "argument 1 (i) = [0, 0]"},
    ),
    _row(
        "no indices",
        "VJP-FD",
        _picked(lambda zeros, i, g: zeros.index_add(0, i, 2 * g)),
        *PICKED,
        once=True,
        words=None,
        exactly={"values": "argument 1 (i) = [0]"},
    ),
    _row(
        "one of three values",
        "VJP-FD",
        function(_reduced, lambda g, _, x, *__: (2 * g * x / max(1, x.numel()), None)),
        *ONE,
        "'mean' | 'sum' | 'none'",
        words="argument 1 (how) = 'mean'; wrong with 'sum', 'none'",
    ),
    _row(
        "lengths that are powers of two, as of a fast Fourier transform",
        "VJP-FD",
        function(lambda x: 3 * x, lambda g, *_: (3 if g.shape[0].bit_count() == 1 else 4) * g),
        *MATRIX,
        words="lengths 1, 2, 4, 8 of argument 0 (x), dimension 0; wrong with 3, 5, 6, 7, 9",
    ),
    _row("a value that fails as well", "BATCH-VMAP", AlongGiven, *MATRIX, "0 | 1 | -1", words=None),
    _row(
        "chance, which backward draws again",
        "VJP-FD",
        function(_drawn, lambda g, _y, _x, p: (_drawn(g, p), None)),
        *MATRIX,
        "0.25 | 0.5",
        stochastic=True,
        words=None,
    ),
    _row(
        "an odd length, which backward shifts to the wrong side",
        "VJP-FD",
        function(
            lambda x, axis: torch.roll(x, x.shape[axis] // 2, axis),
            lambda g, _y, _x, axis: (torch.roll(g, g.shape[axis] // 2, axis), None),
        ),
        *ANY,
        "axis",
        once=True,
        words="lengths 1, 2, 4, 6, 8 of argument 0 (x), dimension 0; wrong with 3, 5, 7, 9",
    ),
    _row(
        "an entry alone",
        "VJP-REPEAT",
        custom(forward=_softmax, backward=_halves_what_is_saved),
        "float[b,n]",
        once=True,
        words=None,
    ),
    _row("a block", "VJP-FD/long", function(lambda x: x.cumsum(-1), _parts_of_64), *ONE, words="shapes (64,)"),
    _row("an axis that is moved", "DECL-AXIS", LOG_SOFTMAX, *ANY, "axis", words=None),
    # -2 is right in the smallest call, but not in those of more dimensions.
    _row(
        "an axis that is right in several failing calls",
        "VJP-FD",
        LOG_SOFTMAX,
        *ANY,
        "axis",
        words="argument 1 (axis) = 0, -2, 1; wrong with -1",
        exactly={"further": None},
    ),
    # With p = 0 the call is right, because twice zero is zero, but not with the other values.
    _row(
        "no choice, as every call is wrong",
        "VJP-FD",
        power(_doubled, "Faulty"),
        *POWERS,
        seed=1,
        words=None,
        says=", 1),",
        exactly={"further": None},
    ),
    _row(
        "no number that moves a threshold",
        "VJP-FD",
        function(
            lambda x, delta: torch.where(x.abs() <= delta, 0.5 * x * x, delta * (x.abs() - 0.5 * delta)), _of_huber
        ),
        *ANY,
        "float(0.5..2)",
        seed=1,
        words=None,
        exactly={"further": None},
    ),
    _row(
        "an output that backward forgets",
        "VJP-FD",
        custom(forward=_pair, backward=lambda ctx, g, _: g * ctx.saved_tensors[0].cos()),
        *ONE,
        seed=1,
        words="output 1 not used",
    ),
    _row(
        "real numbers",
        "VJP-FD",
        function(lambda x: x * x * x, lambda g, _, x: 3 * g * x**2),
        "number[n]",
        seed=1,
        words="float64",
    ),
    _row(
        "an optional tensor left out",
        "VJP-FD",
        function(lambda x, w, b: x * w if b is None else x * w + b, _of_shifted),
        *ONE * 2,
        "float[n] ?",
        words="argument 2 (b) = None",
    ),
    _row(
        "a length other than one",
        "VJP-FD",
        function(scan, _of_scan),
        *SCANNED,
        once=True,
        sizes={"t": (1, 2, 3)},
        words="shapes (2, 1), (1,), (1,)",
    ),
    _row(
        "no length", "VJP-FD", function(scan, _of_scan_wrong), *SCANNED, once=True, sizes={"t": (1, 2, 3)}, words=None
    ),
    *seeded(
        [
            wrong(
                "the smallest shape",
                "VJP-FD",
                function(lambda x: x.sum(1), _lost_for_large),
                *MATRIX,
                shrink=True,
                says="Tensor((5, 2)",
            )
        ],
        3,
    ),
    right("powers", "VJP-FD* VJP-REF*", power(), *POWERS, decided=False),
)
