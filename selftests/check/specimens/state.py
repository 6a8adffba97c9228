"""State around Functions: tensors on ctx, memory never written, random numbers, settings of the process."""

from __future__ import annotations

import random

import numpy as np
import torch

from autograd_conformance.harness.check import Declaration
from autograd_conformance.selftests.check.specimens import right, seeded, whole, wrong
from autograd_conformance.selftests.check.specimens.functions import custom

ONE = ("float[n]",)
# Most of the faults below break most of these.
COMPARING = "MEM-WRITTEN* ENV-RANDOM* FWD-VALUE* VJP-FD* VJP-REPEAT*"


class Saved(torch.autograd.Function):
    """The square, which saves its input."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        return 2 * g * ctx.saved_tensors[0]


# Tensors on ctx.


class Intermediate(Saved):
    """The square, which keeps on ctx what nobody else holds."""

    @staticmethod
    def forward(ctx, x):
        ctx.kept = {"twice": (2 * x,)}
        return x * x

    @staticmethod
    def backward(ctx, g):
        return g * ctx.kept["twice"][0]


def _sorted(ctx, x):
    order = x.argsort(dim=-1, stable=True)
    ctx.order = order.clone()
    ctx.mark_non_differentiable(order)
    return x.gather(-1, order), order


# Memory that was never written.


class Skipped(Saved):
    """Leaves out what is not positive, in a backward that allocates by a method of the cotangent."""

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        gradient = g.new_empty(x.shape)
        gradient[x > 0] = (2 * g * x)[x > 0]
        return gradient


class Written(Saved):
    """Writes all of the memory that it allocates, in several ways."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        y = torch.empty_like(x).copy_(x)
        z = torch.empty(0, dtype=x.dtype).resize_(x.shape)
        torch.mul(x, y, out=z)
        return torch.addmm(x.new_empty(1, 1), z.reshape(-1, 1), x.new_ones(1, 1), beta=0).reshape(x.shape)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        gradient = x.new_empty((2, *x.shape))
        gradient[0] = gradient[1] = g * x.conj()
        return gradient.sum(0)


# Random numbers.


def dropping(draw, name="Dropping"):
    """Dropout with this source of random numbers."""

    def forward(ctx, x):
        mask = (draw(x) < 0.5).to(x.dtype)
        ctx.save_for_backward(mask)
        return x * mask

    return custom(name, forward=forward, backward=lambda ctx, g: g * ctx.saved_tensors[0])


SOURCES = {
    "torch": torch.rand_like,
    "NumPy": lambda x: torch.from_numpy(np.random.random(tuple(x.shape))),
    "Python": lambda x: torch.full(x.shape, random.random()),
}


def seldom(x):
    """Numbers of which nearly all are below a half, whatever the seed is."""
    return torch.rand_like(x) * 0.52


def _own_generator(x):
    return torch.rand(x.shape, generator=torch.Generator().manual_seed(3))


def _forked(x):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        return torch.rand(x.shape)


def _useless(x):
    torch.rand(3)
    return torch.zeros(x.shape)


def _converged(x):
    """A random start that no longer shows in the result."""
    start = torch.rand(x.shape, dtype=torch.float64)
    for _ in range(60):
        start = (start + 0.25) / 2
    return start


UNCHANGING = {
    "a generator of its own": _own_generator,
    "in a fork": _forked,
    "of no use": _useless,
    "a start that does not show": _converged,
}


MASKED = ("float[...]", "float(0.1..0.9)")


def _mask(x, p):
    return (torch.rand(x.shape) >= p).to(x.dtype) / (1 - p)


def _kept(ctx, x, p):
    ctx.mask = _mask(x, p)
    return x * ctx.mask


def _draws(ctx, x, p):
    ctx.p = p
    return x * _mask(x, p)


def _draws_again(ctx, g):
    return g * _mask(g, ctx.p), None


def _rewound(ctx, x, p):
    ctx.p, ctx.state = p, torch.get_rng_state()
    return x * _mask(x, p)


def _draws_the_same(ctx, g):
    with torch.random.fork_rng():
        torch.set_rng_state(ctx.state)
        return g * _mask(g, ctx.p), None


# Settings.


def _changing(change, where):
    """The square, which runs ``change`` in forward or in backward."""
    square = {"forward": Saved.forward, "backward": Saved.backward}

    def changing(ctx, x):
        change()
        return square[where](ctx, x)

    return custom("Changing", **{**square, where: changing})


def _switching(x):
    y = x * x
    torch.set_grad_enabled(False)
    return y


def _inside():
    with torch.no_grad(), torch.autocast("cpu", dtype=torch.float16), np.errstate(all="ignore"):
        torch.ones(2, 2) @ torch.ones(2, 2)


LEFT = {
    "autocast on cpu": lambda: torch.set_autocast_enabled("cpu", True),
    "default device": lambda: torch.set_default_device("meta"),
    "error handling of NumPy": lambda: np.seterr(over="raise"),
    "deterministic algorithms": lambda: torch.use_deterministic_algorithms(True, warn_only=True),
    "flushing of small numbers to zero": lambda: torch.set_flush_denormal(True),
}
SET_BACK = {
    "settings in contexts": _inside,
    "grad mode": lambda: torch.set_grad_enabled(False),
    "the state of random numbers": lambda: torch.rand(3),
}
PLACES = ("forward", "backward")
# The engine sets them back.
OF_THE_ENGINE = {("autocast on cpu", "backward"), ("default device", "backward")}


# Cotangents.


def _bounded(ctx, x):
    ctx.save_for_backward(x.abs() > 100)
    return x.clamp(-100, 100)


def _cut(ctx, g):
    """Most often no entry is set to 0."""
    (outside,) = ctx.saved_tensors
    with torch.no_grad():
        g[outside] = 0
    return g.clone()


def _halved(_, g):
    with torch.no_grad():
        return g.mul_(0.5).clone()


COTANGENT = "cotangent of output 0 (output)"

SPECIMENS = (
    right("an intermediate on ctx", "VJP-INPLACE-SAFE*", Intermediate, "number[...]", decided=False),
    right(
        "a copy of indices on ctx",
        "VJP-INPLACE-SAFE*",
        custom(forward=_sorted, backward=lambda ctx, g, _: torch.zeros_like(g).scatter(-1, ctx.order, g)),
        "float[b,n] separated",
        decided=False,
    ),
    *seeded(
        [
            wrong(
                "memory that was never written",
                "MEM-WRITTEN",
                Skipped,
                *ONE,
                tests="MEM-WRITTEN*",
                shrink=True,
                alone=True,
                exactly={"expected": "0.0"},
            )
        ],
        5,
    ),
    whole(Declaration(Written, "number[...]")),
    *(
        wrong(
            f"random numbers of {source} that are not declared",
            "ENV-RANDOM",
            dropping(draw),
            *ONE,
            tests=f"{COMPARING} VJP-CHAIN*",
            word="wrong",
            alone=True,
            profile="quick",
            says="declare stochastic=True",
        )
        for source, draw in SOURCES.items()
    ),
    *(
        right(
            f"random numbers of {source} that are declared",
            f"{COMPARING} ENV-SETTINGS*",
            dropping(draw),
            *ONE,
            stochastic=True,
            decided=False,
        )
        for source, draw in SOURCES.items()
    ),
    *(
        right(f"random numbers, {name}", "ENV-RANDOM* ENV-SETTINGS* VJP-REPEAT*", dropping(draw), *ONE, decided=False)
        for name, draw in UNCHANGING.items()
    ),
    wrong(
        "a mask that is drawn again",
        "VJP-FD",
        custom("DrawnTwice", forward=_draws, backward=_draws_again),
        *MASKED,
        stochastic=True,
        tests="VJP-FD* VJP-ACCUMULATE* VJP-CHAIN* VJP-REPEAT*",
        profile="quick",
        seed=1,
        exactly={"follows": "ENV-RANDOM"},
        says="backward draws random numbers of its own",
    ),
    *(
        right(
            name,
            "VJP-FD* VJP-ACCUMULATE* VJP-CHAIN* VJP-REPEAT*",
            custom(forward=forward, backward=backward),
            *MASKED,
            stochastic=True,
            decided=False,
        )
        for name, forward, backward in (
            ("a mask that is kept", _kept, lambda ctx, g: (g * ctx.mask, None)),
            ("a mask that is made again", _rewound, _draws_the_same),
        )
    ),
    *(
        right(f"{what} by {where}", "ENV-SETTINGS*", _changing(LEFT[what], where), *ONE, decided=False)
        for what, where in sorted(OF_THE_ENGINE)
    ),
    *(
        wrong(
            f"{what} by {where}",
            "ENV-SETTINGS",
            _changing(change, where),
            *ONE,
            tests="ENV-SETTINGS*",
            word="mutates",
            alone=True,
            profile="quick",
            says=f"{what} by {where}: ",
        )
        for where in PLACES
        for what, change in LEFT.items()
        if (what, where) not in OF_THE_ENGINE
    ),
    wrong(
        "grad mode by a callable",
        "ENV-SETTINGS",
        _switching,
        *ONE,
        tests="ENV-SETTINGS*",
        alone=True,
        profile="quick",
        says="grad mode by forward: True became False",
    ),
    *(
        right(f"{what} by {where}, set back", "ENV-SETTINGS*", _changing(change, where), *ONE, decided=False)
        for what, change in SET_BACK.items()
        for where in PLACES
    ),
    wrong(
        "a cotangent that is written to with its own values",
        "VJP-PURE",
        custom(forward=_bounded, backward=_cut),
        *ONE,
        word="mutates",
        exactly={"got": f"['{COTANGENT} (was written to in place, with the same values)']"},
    ),
    wrong(
        "a cotangent of which values change",
        "VJP-PURE",
        custom(forward=_bounded, backward=_halved),
        *ONE,
        word="mutates",
        exactly={"got": f"['{COTANGENT}']"},
    ),
)
