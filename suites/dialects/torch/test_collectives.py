"""Collectives in two processes: the gradients of the functional ones, of one's own, and those that processes share."""

import warnings
from collections.abc import Callable

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
    if subject.device != "cpu":
        pytest.skip("collectives are checked over gloo, on the CPU")
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
    "broadcast": (lambda x: differentiable.broadcast(x, 1), lambda xs: _same(xs[1])),
    "scatter": (lambda x: differentiable.scatter(list(x.split(1)), 1), lambda xs: np.stack(_halves(xs[1]))),
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


def _assert_gradients_of_both(subject, data, collectives):
    """A collective has its values and, for one cotangent of each process, the gradients of both."""
    call, right = collectives[subject.draw(data, collectives, "collective")]
    values = _drawn(subject, data, "x of each process")
    g = _drawn(subject, data, "cotangent of each process", right(values).shape)
    x = subject.tensor(values).requires_grad_()
    y = _joint(subject, _quietly(call))(x)
    subject.assert_same("output of each process", got=y, expected=right(values))
    (found,) = torch.autograd.grad(y, x, subject.tensor(g))
    subject.assert_same("gradient in each process", got=found, expected=_transposed(right, g))


@keeps("DIST-01", examples=0.4)
def test_functional_collectives_have_the_gradients_of_all(subject, data):
    """The gradient of a part is what all outputs owe to it, in the other process as well."""
    _assert_gradients_of_both(subject, data, FUNCTIONAL)


@keeps("DIST-01", variant="broadcast", examples=0.2)
def test_a_functional_broadcast_has_the_gradients_of_all(subject, data):
    """The process that sends gets the sum of the cotangents, the other one zeros."""
    _assert_gradients_of_both(subject, data, BROADCAST)


# What each process gets, and the gradients of both for a cotangent of each.
REDUCTIONS = {
    "avg": (lambda xs: sum(xs) / 2, lambda xs, g: _same(g / 2)),
    "max": (lambda xs: xs.max(0), lambda xs, g: g * (xs == xs.max(0))),
    "min": (lambda xs: xs.min(0), lambda xs, g: g * (xs == xs.min(0))),
    "product": (lambda xs: xs[0] * xs[1], lambda xs, g: g * xs[::-1]),
}


def _assert_right_or_refused(subject, data, collectives):
    name = subject.draw(data, collectives, "reduction")
    right, gradients = REDUCTIONS[name]
    first, step = _drawn(subject, data, "x of the first process", PARTS[1:]), np.asarray([[1.0, -2.0], [-1.0, 3.0]])
    # No two are equal, so that the largest is one alone.
    values, g = np.stack([first, first + step]), _drawn(subject, data, "cotangent of each process")
    x = subject.tensor(values).requires_grad_()
    y = _joint(subject, _quietly(collectives[name]))(x)
    subject.assert_same("output of each process", got=y, expected=_same(right(values)))
    try:
        (found,) = torch.autograd.grad(y, x, subject.tensor(g))
    except RuntimeError:
        return
    expected = np.asarray(gradients(values, sum(g)), np.float64)
    subject.assert_same("gradient of a reduction that backward does not refuse", got=found, expected=expected)


@keeps("DIST-02", examples=0.2)
def test_other_functional_reductions_are_right_or_refused(subject, data):
    """Backward through a mean, a product, a largest and a smallest value raises or is right."""
    calls = {op: lambda x, op=op: functional.all_reduce(x, op, _world()) for op in REDUCTIONS if op != "avg"}
    _assert_right_or_refused(subject, data, calls)


@keeps("DIST-03", examples=0.4)
def test_differentiable_collectives_have_the_gradients_of_all(subject, data):
    """The gradient of a part is what all outputs owe to it, in the other process as well."""
    _assert_gradients_of_both(subject, data, DIFFERENTIABLE)


@keeps("DIST-03", variant="reductions", examples=0.2)
def test_other_differentiable_reductions_are_right_or_refused(subject, data):
    """Backward through a product, a largest and a smallest value raises or is right."""
    ops = {"max": ReduceOp.MAX, "min": ReduceOp.MIN, "product": ReduceOp.PRODUCT}
    calls = {name: lambda x, op=op: differentiable.all_reduce(x, op) for name, op in ops.items()}
    _assert_right_or_refused(subject, data, calls)


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
    """A module with the parameters w, which has a gradient, ``none``, which has none, and maybe an unused one."""

    def __init__(self, w, *, unused, recomputed):
        super().__init__()
        self.w, self.none = torch.nn.Parameter(w.clone()), torch.nn.Parameter(w.clone())
        self.unused = torch.nn.Parameter(w.clone()) if unused else None
        self.recomputed = recomputed

    def forward(self, x):
        if self.recomputed:
            return checkpoint.checkpoint(_Scaled.apply, x, self.w, self.none, use_reentrant=False)
        return _Scaled.apply(x, self.w, self.none)


@keeps("DIST-04", examples=0.4)
def test_the_gradients_of_data_parallel_processes_are_averaged(subject, data):
    """After backward each process has the mean of FACTOR * x in w.grad."""
    unused = subject.draw(data, st.booleans(), "a parameter is unused")
    recomputed = subject.draw(data, st.booleans(), "the Function is recomputed in backward")
    options = {"find_unused_parameters": unused, "gradient_as_bucket_view": subject.draw(data, st.booleans(), "views")}
    xs, w = _drawn(subject, data, "x of each process"), _drawn(subject, data, "w", PARTS[1:])

    def step(x, w):
        module = parallel.DistributedDataParallel(_Model(w, unused=unused, recomputed=recomputed), **options)
        module(x).sum().backward()
        return module.module.w.grad

    found = _joint(subject, step, replicated=(1,))(*subject.tensors([xs, w]))
    subject.assert_same("w.grad of each process", got=found, expected=_same(FACTOR * sum(xs) / 2))


@keeps("DIST-04", variant="no_sync", examples=0.2)
def test_gradients_within_no_sync_are_averaged_later(subject, data):
    """Within no_sync each process adds its own gradient, and the next backward averages what has been added."""
    first, second = _drawn(subject, data, "first x of each process"), _drawn(subject, data, "second x of each process")
    w = _drawn(subject, data, "w", PARTS[1:])

    def steps(x, z, w):
        module = parallel.DistributedDataParallel(_Model(w, unused=False, recomputed=False))
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
