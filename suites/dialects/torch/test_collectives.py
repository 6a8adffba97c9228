"""Collectives in two processes: the gradients of the functional ones, of one's own, and those that processes share."""

import os
import warnings
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
import torch
import torch.distributed.nn.functional as differentiable
from hypothesis import strategies as st
from torch import distributed
from torch.distributed import ReduceOp
from torch.distributed import _functional_collectives as functional
from torch.nn import parallel
from torch.utils import checkpoint

from autograd_conformance.harness.testing.marks import keeps
from autograd_conformance.implementations.torch.processes import in_processes

# Of each of the two processes a matrix. Sums of these numbers are exact.
PARTS = (2, 2, 2)
NUMBERS = st.integers(-3, 3)
# The gradient of a Function's parameter is too large by this factor, so that it shows whether backward was used.
FACTOR = 4


def _drawn(subject, data, what, shape=PARTS):
    """Numbers in this shape."""
    size = int(np.prod(shape))
    found = subject.draw(data, st.lists(NUMBERS, min_size=size, max_size=size), what)
    return np.asarray(found, np.float64).reshape(shape)


def _joint(subject, function, **options):
    """The function in two processes. Skips the test on another device than the CPU."""
    if subject.device != "cpu" or subject.implementation.accelerators() or not hasattr(os, "fork"):
        pytest.skip("collectives are checked over gloo on the CPU, in processes that are forked without an accelerator")
    return in_processes(function, **options)


def _world():
    return distributed.group.WORLD


def _same(y):
    """What both processes get."""
    return np.stack([y, y])


def _halves(y, axis=0):
    return np.split(y, 2, axis)


def _exchanged(xs):
    """What each process gets if each sends its halves to both."""
    return np.stack([np.concatenate([_halves(x)[rank] for x in xs]) for rank in range(2)])


# The collective of a process, and what it computes of the parts of both.
FUNCTIONAL = {
    "all_reduce": (lambda x: functional.all_reduce(x, "sum", _world()), lambda xs: _same(sum(xs))),
    "all_gather_single": (
        lambda x: functional.all_gather_single_autograd(x, 0, _world()),
        lambda xs: _same(np.concatenate(list(xs))),
    ),
    "all_gather_single of dimension 1": (
        lambda x: functional.all_gather_single_autograd(x, 1, _world()),
        lambda xs: _same(np.concatenate(list(xs), 1)),
    ),
    "reduce_scatter_single": (
        lambda x: functional.reduce_scatter_single_autograd(x, "sum", 0, _world()),
        lambda xs: np.stack(_halves(sum(xs))),
    ),
    "reduce_scatter_single of dimension 1": (
        lambda x: functional.reduce_scatter_single_autograd(x, "sum", 1, _world()),
        lambda xs: np.stack(_halves(sum(xs), 1)),
    ),
    "all_to_all_single": (lambda x: functional.all_to_all_single_autograd(x, None, None, _world()), _exchanged),
    "all_reduce_coalesced": (
        lambda x: sum(functional.all_reduce_coalesced([x, 2 * x], "sum", _world())),
        lambda xs: _same(3 * sum(xs)),
    ),
    "all_gather_single_coalesced": (
        lambda x: sum(functional.all_gather_single_coalesced([x, 2 * x], _world())),
        lambda xs: _same(3 * np.concatenate(list(xs))),
    ),
    "reduce_scatter_single_coalesced": (
        lambda x: sum(functional.reduce_scatter_single_coalesced([x, 2 * x], "sum", [0, 0], _world())),
        lambda xs: np.stack(_halves(3 * sum(xs))),
    ),
}
# What each process sends to the first and the second, in rows: the first keeps both, and the second shares.
_ROWS = ([2, 0], [1, 1])


def _shared_unevenly(exchange):
    """An exchange in which the processes send and get different numbers of rows; without its last rows it has four."""

    def call(x):
        rank = distributed.get_rank()
        y = exchange(x, [rows[rank] for rows in _ROWS], _ROWS[rank])
        return torch.cat([y, y.new_zeros(4 - len(y), 2)])

    return call


def _got_unevenly(xs):
    first, second = np.concatenate([xs[0], xs[1][:1]]), xs[1][1:]
    return np.stack([np.concatenate([y, np.zeros((4 - len(y), 2))]) for y in (first, second)])


FUNCTIONAL["all_to_all_single of uneven parts"] = (
    _shared_unevenly(lambda x, got, sent: functional.all_to_all_single_autograd(x, got, sent, _world())),
    _got_unevenly,
)
BROADCAST = {
    f"broadcast from {src}": (
        lambda x, src=src: functional.broadcast(x, src, _world()),
        lambda xs, src=src: _same(xs[src]),
    )
    for src in range(2)
}
DIFFERENTIABLE = {
    "all_reduce": (lambda x: differentiable.all_reduce(x), lambda xs: _same(sum(xs))),
    "all_gather": (
        lambda x: torch.cat(differentiable.all_gather(x)),
        lambda xs: _same(np.concatenate(list(xs))),
    ),
    "reduce_scatter": (
        lambda x: differentiable.reduce_scatter(torch.empty_like(x[:1]), list(x.split(1))),
        lambda xs: np.stack(_halves(sum(xs))),
    ),
    "all_to_all": (
        lambda x: torch.cat(differentiable.all_to_all([torch.empty_like(x[:1]) for _ in range(2)], list(x.split(1)))),
        _exchanged,
    ),
    "all_to_all_single": (lambda x: differentiable.all_to_all_single(torch.empty_like(x), x), _exchanged),
    "all_to_all_single of uneven parts": (
        _shared_unevenly(lambda x, got, sent: differentiable.all_to_all_single(x.new_empty(sum(got), 2), x, got, sent)),
        _got_unevenly,
    ),
    "broadcast": (lambda x: differentiable.broadcast(x, 1), lambda xs: _same(xs[1])),
    "scatter": (lambda x: differentiable.scatter(list(x.split(1)), 1), lambda xs: np.stack(_halves(xs[1]))),
    # What other processes get of a reduction is not said.
    "reduce": (
        lambda x: differentiable.reduce(x, 1) * distributed.get_rank(),
        lambda xs: np.stack([0 * sum(xs), sum(xs)]),
    ),
    "gather": (
        lambda x: torch.cat(differentiable.gather(x, 1)),
        lambda xs: np.stack([np.zeros((4, 2)), np.concatenate(list(xs))]),
    ),
}


def _transposed(right: Callable[..., np.ndarray], cotangents: np.ndarray) -> np.ndarray:
    """The gradients of a linear function of the parts of both processes."""
    units = np.eye(np.prod(PARTS)).reshape(-1, *PARTS)
    return np.asarray([np.sum(cotangents * right(unit)) for unit in units]).reshape(PARTS)


def _quietly(call):
    """The call without the warning that another collective is the new one."""

    def quiet(x):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            return call(x)

    return quiet


def _assert_gradients_of_both(subject, data, collectives, transposed=(False, True)):
    """Each collective has its values and, for a cotangent of each process, the gradients of both."""
    values, numbers = _drawn(subject, data, "x of each process"), _drawn(subject, data, "numbers of cotangents")
    # A transposed copy is not contiguous in the processes either.
    transposed = subject.draw(data, transposed, "cotangents are transposed")
    x = subject.tensor(values).requires_grad_()
    calls = [call for call, _ in collectives.values()]
    outputs = _joint(subject, _quietly(lambda x: tuple(call(x) for call in calls)))(x)
    for number, (name, (_, right), y) in enumerate(zip(collectives, collectives.values(), outputs, strict=True)):
        expected = right(values)
        subject.assert_same(f"output of {name} in each process", got=y, expected=expected)
        g = np.resize(np.roll(numbers, number), expected.shape)
        cotangent = subject.tensor(g.swapaxes(-1, -2).copy()).mT if transposed else subject.tensor(g)
        (found,) = torch.autograd.grad(y, x, cotangent, retain_graph=True)
        subject.assert_same(f"gradient of {name} in each process", got=found, expected=_transposed(right, g))


@keeps("DIST-01", examples=0.4)
def test_functional_collectives_have_the_gradients_of_all(subject, data):
    """The gradient of a part is what all outputs owe to it, in the other process as well."""
    _assert_gradients_of_both(subject, data, FUNCTIONAL)


@keeps("DIST-06", examples=0.2)
def test_a_functional_broadcast_has_the_gradients_of_all(subject, data):
    """The process that sends gets the sum of the cotangents, the other one zeros."""
    _assert_gradients_of_both(subject, data, BROADCAST)


# What a reduction gives each process, and the gradients of both for the sum of the cotangents.
REDUCTIONS = {
    "max": (lambda xs: xs.max(0), lambda xs, g: g * (xs == xs.max(0))),
    "min": (lambda xs: xs.min(0), lambda xs, g: g * (xs == xs.min(0))),
    "product": (lambda xs: xs[0] * xs[1], lambda xs, g: g * xs[::-1]),
}
# Collectives that reduce, with a sum over what they give the processes: so that the cotangent of all is g.
REDUCING = {
    "all_reduce": lambda x, op: functional.all_reduce(x, op, _world()) / 2,
    "all_reduce_coalesced": lambda x, op: functional.all_reduce_coalesced([x], op, _world())[0] / 2,
    "reduce_scatter_single": lambda x, op: functional.reduce_scatter_single_autograd(x, op, 0, _world()),
}
OPS = {"max": ReduceOp.MAX, "min": ReduceOp.MIN, "product": ReduceOp.PRODUCT}
DIFFERENTIABLY_REDUCING = {
    "all_reduce": lambda x, op: differentiable.all_reduce(x, OPS[op]) / 2,
    "reduce": lambda x, op: differentiable.reduce(x, 1, OPS[op]) * distributed.get_rank(),
    "reduce_scatter": lambda x, op: differentiable.reduce_scatter(torch.empty_like(x[:1]), list(x.split(1)), OPS[op]),
}


def _assert_right_or_refused(subject, data, collectives):
    """The sum over the outputs of a collective has the right gradients, or both processes raise in backward."""
    name, op = subject.draw(data, collectives, "collective"), subject.draw(data, REDUCTIONS, "reduction")
    right, gradients = REDUCTIONS[op]
    first, step = _drawn(subject, data, "x of the first process", PARTS[1:]), np.asarray([[1.0, -2.0], [-1.0, 3.0]])
    # No two are equal, so that the largest is one alone.
    values = np.stack([first, first + step])
    x = subject.tensor(values).requires_grad_()
    y = _joint(subject, _quietly(lambda x: collectives[name](x, op)))(x).sum()
    subject.assert_same("sum of the outputs", got=y, expected=right(values).sum())
    try:
        (found,) = torch.autograd.grad(y, x)
    except RuntimeError as raised:
        refused = all(f"process {rank} raised" in str(raised) for rank in range(2))
        what = "what backward through a reduction says if it is refused"
        subject.assert_that(refused, what, got=str(raised), expected="an error of each process")
        return
    expected = np.asarray(gradients(values, 1.0), np.float64)
    subject.assert_same("gradient of a reduction that backward does not refuse", got=found, expected=expected)


@keeps("DIST-02", examples=0.4)
def test_other_functional_reductions_are_right_or_refused(subject, data):
    """Backward through a product, a largest and a smallest value raises or is right."""
    _assert_right_or_refused(subject, data, REDUCING)


@keeps("DIST-03", examples=0.4)
def test_differentiable_collectives_have_the_gradients_of_all(subject, data):
    """The gradient of a part is what all outputs owe to it, in the other process as well."""
    _assert_gradients_of_both(subject, data, DIFFERENTIABLE, transposed=(False,))


@keeps("DIST-03", variant="transposed", examples=0.4)
def test_differentiable_collectives_take_transposed_cotangents(subject, data):
    """The gradients are right where the cotangents are not contiguous."""
    _assert_gradients_of_both(subject, data, DIFFERENTIABLE, transposed=(True,))


@keeps("DIST-03", variant="reductions", examples=0.2)
def test_other_differentiable_reductions_are_right_or_refused(subject, data):
    """Backward through a product, a largest and a smallest value raises or is right."""
    _assert_right_or_refused(subject, data, DIFFERENTIABLY_REDUCING)


class _Scaled(torch.autograd.Function):
    """x * w, with a gradient of w that is too large by FACTOR and none for the last argument."""

    @staticmethod
    def forward(ctx, x, w, _):
        ctx.save_for_backward(x, w)
        return x * w

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        return g * w, FACTOR * g * x, None


class _Model(torch.nn.Module):
    """A module with the parameters w, which has a gradient, ``none``, which has none, and one that is rarely used."""

    def __init__(self, w, *, used, recomputed):
        super().__init__()
        self.w, self.none, self.rare = (torch.nn.Parameter(w.clone()) for _ in range(3))
        self.used = used
        self.call = partial(checkpoint.checkpoint, _Scaled.apply, use_reentrant=False) if recomputed else _Scaled.apply

    def forward(self, x):
        y = self.call(x, self.w, self.none)
        return y + self.rare if distributed.get_rank() < self.used else y

    def gradients(self):
        """The gradients of the parameters; None is zeros."""
        return tuple(torch.zeros_like(p) if p.grad is None else p.grad for p in self.parameters())


@keeps("DIST-04", examples=0.4)
def test_the_gradients_of_data_parallel_processes_are_averaged(subject, data):
    """After backward each process has the means of FACTOR * x, of nothing, and of ones where a parameter is used."""
    used = subject.draw(data, (2, 1, 0), "processes that use the last parameter")
    recomputed = subject.draw(data, st.booleans(), "the Function is recomputed in backward")
    views = subject.draw(data, st.booleans(), "gradients are views")
    options = {"find_unused_parameters": used < 2, "gradient_as_bucket_view": views}
    xs, w = _drawn(subject, data, "x of each process"), _drawn(subject, data, "w", PARTS[1:])

    def step(x, w):
        module = parallel.DistributedDataParallel(_Model(w, used=used, recomputed=recomputed), **options)
        module(x).sum().backward()
        return module.module.gradients()

    found = _joint(subject, step, replicated=(1,))(*subject.tensors([xs, w]))
    expected = [FACTOR * sum(xs) / 2, np.zeros(PARTS[1:]), np.full(PARTS[1:], used / 2)]
    subject.assert_all_same("gradients of the parameters in each process", got=found, expected=[*map(_same, expected)])


@keeps("DIST-04", variant="no_sync", examples=0.2)
def test_gradients_within_no_sync_are_averaged_later(subject, data):
    """Within no_sync each process adds its own gradient, and the next backward averages what has been added."""
    first, second = _drawn(subject, data, "first x of each process"), _drawn(subject, data, "second x of each process")
    w = _drawn(subject, data, "w", PARTS[1:])

    def steps(x, z, w):
        module = parallel.DistributedDataParallel(_Model(w, used=2, recomputed=False))
        with module.no_sync():
            module(x).sum().backward()
        own = module.module.w.grad.clone()
        module(z).sum().backward()
        return own, module.module.w.grad

    own, both = _joint(subject, steps, replicated=(2,))(*subject.tensors([first, second, w]))
    subject.assert_same("w.grad of each process within no_sync", got=own, expected=FACTOR * first)
    subject.assert_same("w.grad of each process", got=both, expected=_same(FACTOR * sum(first + second) / 2))


def _total(x):
    """The sum over all elements in all processes."""
    total = x.sum()
    distributed.all_reduce(total)
    return total


class _TimesTotal(torch.autograd.Function):
    """x * the sum of x over all processes."""

    @staticmethod
    def forward(ctx, x):
        total = _total(x)
        ctx.save_for_backward(x, total)
        return x * total

    @staticmethod
    def backward(ctx, g):
        x, total = ctx.saved_tensors
        return g * total + _total(g * x)


@keeps("DIST-05", examples=0.2)
def test_a_function_with_collectives_has_the_gradients_of_the_whole(subject, data):
    """In two processes the outputs and gradients are those of x * sum(x) in one."""
    values, g = _drawn(subject, data, "x of each process"), _drawn(subject, data, "cotangent of each process")
    x = subject.tensor(values).requires_grad_()
    y = _joint(subject, _TimesTotal.apply)(x)
    subject.assert_same("output of each process", got=y, expected=values * values.sum())
    (found,) = torch.autograd.grad(y, x, subject.tensor(g))
    expected = g * values.sum() + (g * values).sum()
    subject.assert_same("gradient in each process", got=found, expected=expected)


@keeps("DIST-05", variant="parallel", examples=0.2)
def test_a_function_with_collectives_is_averaged_in_data_parallel_processes(subject, data):
    """The gradient of a shared factor is half of that of the whole, whose mean DistributedDataParallel takes."""
    values, g = _drawn(subject, data, "x of each process"), _drawn(subject, data, "cotangent of each process")
    factor = float(subject.draw(data, NUMBERS, "factor"))

    def step(x, g):
        layer = torch.nn.Linear(1, 1, bias=False, dtype=x.dtype)
        with torch.no_grad():
            layer.weight.fill_(factor)
        module = parallel.DistributedDataParallel(layer)
        _TimesTotal.apply(module(x[..., None])).backward(g[..., None])
        return layer.weight.grad.view(())

    found = _joint(subject, step)(*subject.tensors([values, g]))
    whole = 2 * factor * values.sum() * (g * values).sum()
    subject.assert_same("weight.grad of each process", got=found, expected=_same(np.asarray(whole / 2)))
