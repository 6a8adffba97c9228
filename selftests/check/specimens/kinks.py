"""Functions at kinks, ties and zeros: what is wrong there, and every convention."""

from __future__ import annotations

import torch
from torch.nn import functional

from autograd_conformance.selftests.check.specimens import right, wrong
from autograd_conformance.selftests.check.specimens.functions import column, custom, function, with_jvp

LENGTHS = {"n": (1, 2, 3)}
ONE, ROWS, TWO = ("float[...]",), ("float[b,n]",), ("float[n,m]", "float[n,m]")
SPARSE = ("float[n,m] sparse", "float[m,k]")


def split(g, y, x):
    ties = (x == column(y)).to(x.dtype)
    return column(g) * ties / ties.sum(-1, keepdim=True)


def _of_norm(g, y, x):
    y = column(y)
    return column(g) * torch.where(y == 0, 0, x / torch.where(y == 0, 1, y))


def _norm(at_zero):
    """The norm of each row, with that gradient of a row of zeros."""

    def gradients(g, y, x):
        zero = torch.zeros_like(x) + torch.tensor([*at_zero, *[0.0] * x.shape[-1]], dtype=x.dtype)[: x.shape[-1]]
        return column(g) * torch.where(column(y) == 0, zero, x / column(torch.where(y == 0, 1, y)))

    return function(lambda x: x.norm(dim=-1), gradients)


def _polar(a):
    u, _, vh = torch.linalg.svd(a, full_matrices=False)
    return u @ vh


def _nuclear(a):
    return torch.linalg.svdvals(a).sum()


def _of_sinc(g, y, x):
    inner = torch.where(x == 0, 1, x)
    return g * torch.where(x == 0, 0, (x.cos() - y) / inner)


def _sinc(x):
    return torch.where(x == 0, 1, x.sin() / torch.where(x == 0, 1, x))


def of_sparse(g, _, a, b):
    a = a.coalesce()
    values = (g[a.indices()[0]] * b[a.indices()[1]]).sum(-1)
    return torch.sparse_coo_tensor(a.indices(), values, a.shape, is_coalesced=True), a.t() @ g


def of_sparse_at_one(g, y, a, b):
    found, other = of_sparse(g, y, a, b)
    values = found.values() * (a.coalesce().values() != 1)
    return torch.sparse_coo_tensor(found.indices(), values, a.shape, is_coalesced=True), other


def _relu(at_zero):
    return function(torch.relu, lambda g, _, x: g * torch.where(x == 0, at_zero, (x > 0).to(x.dtype)))


def abs_at(at_zero):
    return function(torch.abs, lambda g, _, x: g * torch.where(x == 0, at_zero, x.sign()))


def amax(x):
    return x.amax(-1)


WRONG = {
    "no gradient at zero": (function(lambda x: 3 * x, lambda g, _, x: 3 * g * (x != 0)), ONE),
    "every tie gets all": (function(amax, lambda g, y, x: column(g) * (x == column(y))), ROWS),
    "five at the kink of abs": (abs_at(5.0), ONE),
    "a fifth too much at the kink of abs": (abs_at(1.2), ONE),
    "one at the flat zero": (
        function(lambda x: x * x.abs(), lambda g, _, x: g * torch.where(x == 0, 1, 2 * x.abs())),
        ONE,
    ),
    "neither of two equal ones": (function(torch.maximum, lambda g, _, x, y: (g * (x > y), g * (y > x))), TWO),
    "both of two equal ones": (function(torch.maximum, lambda g, _, x, y: (g * (x >= y), g * (y >= x))), TWO),
    "a product divided by its factor": (
        function(lambda x: x.prod(-1), lambda g, y, x: torch.nan_to_num(column(g * y) / x, 0.0, 0.0, 0.0)),
        ROWS,
    ),
    "equal neighbours skipped": (
        function(lambda x: x.square(), lambda g, _, x: 2 * g * x * (x.diff(dim=-1, prepend=x[..., :1] - 1) != 0)),
        ROWS,
    ),
    "at the norm of zeros, longer than 1": (_norm([1.0, 1.0]), ROWS),
    "at one": (function(torch.sin, lambda g, _, x: g * x.cos() * (x != 1)), ONE),
    "complex at zero": (function(lambda x: x * (1 + 2j), lambda g, _, x: g * (1 - 2j) * (x != 0)), ("complex[...]",)),
    "an entry of a sparse tensor at one": (function(torch.sparse.mm, of_sparse_at_one), SPARSE),
}
RIGHT = {
    "relu 0": (_relu(0.0), ONE),
    "relu 0.5": (_relu(0.5), ONE),
    "relu 1": (_relu(1.0), ONE),
    "maximum, halves": (torch.maximum, TWO),
    "maximum, the first": (function(torch.maximum, lambda g, _, x, y: (g * (x >= y), g * (y > x))), TWO),
    "amax, split evenly": (function(amax, split), ROWS),
    "max, one index": (lambda x: x.max(-1).values, ROWS),
    "median": (torch.median, ONE),
    "abs": (torch.abs, ONE),
    "complex abs": (torch.abs, ("complex[...]",)),
    "clamp": (lambda x: x.clamp(-1, 1), ONE),
    "leaky relu": (functional.leaky_relu, ONE),
    "hinge": (lambda x, y: torch.relu(1 - x * y).mean(), TWO),
    "weighted relus that cancel": (lambda x, y: (torch.relu(x) - torch.relu(y)).sum(), TWO),
    "softshrink": (functional.softshrink, ONE),
    "hardshrink, which jumps": (functional.hardshrink, ONE),
    "sort": (lambda x: torch.sort(x, dim=-1, stable=True).values, ROWS),
    "cummax": (lambda x: x.cummax(-1).values, ROWS),
    "floor": (function(torch.floor, lambda g, *_: 0 * g), ONE),
    "norm": (function(lambda x: x.norm(dim=-1), _of_norm), ROWS),
    "norm, as long as it may be at 0": (_norm([1.0]), ROWS),
    "nuclear norm": (function(_nuclear, lambda g, _, a: g * _polar(a)), ("float[n,m]",)),
    "sinc": (function(_sinc, _of_sinc), ONE),
    "another value at zero": (lambda x: torch.where(x == 0, 1.0, 3 * x), ONE),
    "square root of abs": (lambda x: x.abs().sqrt(), ONE),
    "sparse product": (torch.sparse.mm, SPARSE),
    "sparse product with a dense gradient": (
        function(torch.sparse.mm, lambda g, _, a, b: (g @ b.t(), a.t() @ g)),
        SPARSE,
    ),
    "all pairs": (lambda x, y: (x[:, None] - y[None]).abs().sum(-1).amin(1).sum(), TWO),
}


def _last(x):
    """The index of the last of the largest entries of each row."""
    return x.shape[-1] - 1 - x.flip(-1).argmax(-1, keepdim=True)


def _first(x):
    return x.argmax(-1, keepdim=True)


def _to(chosen):
    """The largest entry of each row, whose gradient goes to the one that is chosen of equal ones."""

    def gradients(g, _, x):
        return torch.zeros_like(x).scatter(-1, chosen(x), column(g))

    return function(amax, gradients)


def _first_but_last_in_batches():
    def setup_context(ctx, inputs, _):
        ctx.save_for_backward(*inputs)

    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return torch.zeros_like(x).scatter(-1, _first(x), column(g))

    def vmap(_, in_dims, x):
        return _to(_last).apply(x.movedim(in_dims[0], 0)), 0

    return custom("Amax", forward=amax, setup_context=setup_context, backward=backward, vmap=vmap)


def _step(x):
    return (x > 0).to(x.dtype)


def _at_most_one(x):
    return x.clamp(-1, 1)


def _of_hinge(x, y):
    low = (x * y < 1).to(x.dtype)
    return -y * low, -x * low


# What is right at a kink by a rule of forward mode: a slope of either side, or between them.
TANGENTS = {
    "relu 0": (with_jvp(torch.relu, lambda x: (_step(x),)), ONE),
    "relu 1": (with_jvp(torch.relu, lambda x: ((x >= 0).to(x.dtype),)), ONE),
    "relu 0.5 in forward mode alone": (
        with_jvp(torch.relu, lambda x: (_step(x),), lambda x: ((x.sign() + 1) / 2,)),
        ONE,
    ),
    "abs": (with_jvp(torch.abs, lambda x: (x.sign(),)), ONE),
    "clamp, 1 at its bounds": (with_jvp(_at_most_one, lambda x: ((x.abs() <= 1).to(x.dtype),)), ONE),
    "clamp, 0 at its bounds": (with_jvp(_at_most_one, lambda x: ((x.abs() < 1).to(x.dtype),)), ONE),
    "leaky relu": (with_jvp(lambda x: torch.where(x > 0, x, x / 8), lambda x: (_step(x) * 0.875 + 0.125,)), ONE),
    "maximum": (with_jvp(torch.maximum, lambda x, y: ((x >= y).to(x.dtype), (x < y).to(x.dtype))), TWO),
    "hinge": (with_jvp(lambda x, y: torch.relu(1 - x * y), _of_hinge), TWO),
    "relus that cancel": (
        with_jvp(lambda x, y: torch.relu(x) - torch.relu(y), lambda x, y: (_step(x), -_step(y))),
        TWO,
    ),
    "square of relu": (with_jvp(lambda x: torch.relu(x) ** 2, lambda x: (2 * torch.relu(x),)), ONE),
    "floor, which jumps": (with_jvp(torch.floor, lambda x: (0 * x,)), ONE),
}
OTHER_TANGENTS = {
    "two at the kink of relu": with_jvp(
        torch.relu, lambda x: (_step(x),), lambda x: (torch.where(x == 0, 2.0, _step(x)),)
    ),
    "relu, twice too large": with_jvp(torch.relu, lambda x: (_step(x),), lambda x: (2 * _step(x),)),
    "relu, the other side": with_jvp(torch.relu, lambda x: (_step(x),), lambda x: ((x < 0).to(x.dtype),)),
    "abs without a sign": with_jvp(torch.abs, lambda x: (x.sign(),), lambda x: (torch.ones_like(x),)),
}
# A part of a slope is no freedom where the function is smooth.
SMOOTH_TANGENTS = {
    "a cube, a little too much": (
        with_jvp(lambda x: x**3, lambda x: (3 * x * x,), lambda x: (3.0006 * x * x,)),
        "float64",
    ),
    "a cube, a twentieth too much": (
        with_jvp(lambda x: x**3, lambda x: (3 * x * x,), lambda x: (3.15 * x * x,)),
        "float32",
    ),
    "a square, a little too much": (
        with_jvp(torch.square, lambda x: (2 * x,), lambda x: (2.0008 * x,)),
        "float64",
    ),
}
_OF_STEPS = with_jvp(torch.round, lambda x: (torch.ones_like(x),))
_TWICE = with_jvp(torch.round, lambda x: (torch.ones_like(x),), lambda x: (2 * torch.ones_like(x),))


def _in_single(table):
    """The same rows, to be checked in single precision, which is enough for all but complex numbers."""
    return {f"{name}, in single precision": row for name, row in table.items() if row[1] != ("complex[...]",)}


FORWARD_MODE = "JVP-REF JVP-ADJOINT"
SLOPE = "slope where entries are special or equal"
SPECIMENS = (
    *(wrong(name, "VJP-FD/kinks", f, *arguments, says=SLOPE, alone=True) for name, (f, arguments) in WRONG.items()),
    *(right(name, "VJP-FD/kinks", f, *arguments) for name, (f, arguments) in RIGHT.items()),
    *(
        wrong(name, "VJP-FD/kinks", f, *arguments, says=SLOPE, alone=True, dtypes="float32")
        for name, (f, arguments) in _in_single(WRONG).items()
    ),
    *(
        right(name, "VJP-FD/kinks", f, *arguments, dtypes="float32")
        for name, (f, arguments) in _in_single(RIGHT).items()
    ),
    *(right(f"jvp of {name}", FORWARD_MODE, f, *arguments) for name, (f, arguments) in TANGENTS.items()),
    *(
        right(f"jvp of {name}, in half precision", FORWARD_MODE, f, *arguments, dtypes=("float32", "float16"))
        for name, (f, arguments) in TANGENTS.items()
    ),
    *(wrong(f"jvp of {name}", "JVP-REF", f, *ONE, tests=FORWARD_MODE) for name, f in OTHER_TANGENTS.items()),
    *(
        wrong(f"jvp of {name}", "JVP-REF", f, *ONE, tests=FORWARD_MODE, dtypes=dtype, profile="quick")
        for name, (f, dtype) in SMOOTH_TANGENTS.items()
    ),
    right("jvp of a straight-through estimator", "JVP-REF", _OF_STEPS, *ONE, soft=lambda x: x * 1),
    wrong("jvp of a straight-through estimator, twice too large", "JVP-REF", _TWICE, *ONE, soft=lambda x: x * 1),
    right("another of the largest under vmap", "BATCH-VMAP", _first_but_last_in_batches(), *ROWS, sizes=LENGTHS),
    right(
        "another of the largest in an even number of rows",
        "DECL-INDEPENDENT",
        _to(lambda x: _first(x) if len(x) % 2 else _last(x)),
        *ROWS,
        independent="b",
        sizes=LENGTHS,
    ),
)
