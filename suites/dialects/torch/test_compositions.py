"""Transforms of torch.func within each other, on a custom Function with all its rules."""

import numpy as np
import torch
from hypothesis import strategies as st

from autograd_conformance.harness.checking.marks import keeps
from autograd_conformance.suites.contract._handwritten import define
from autograd_conformance.suites.dialects.torch._func_transforms import (
    assert_hessians,
    drawn_function,
    float_primals,
    some_positions,
    transformable,
    weighted_loss,
)

# Transforms of an elementwise function. Each differentiates it once, except vmap.
REVERSE = {
    "grad": lambda f: torch.func.grad(lambda x: torch.sum(f(x))),
    "vjp": lambda f: lambda x: torch.func.vjp(f, x)[1](torch.ones_like(x))[0],
    "jacrev": lambda f: torch.func.jacrev(lambda x: torch.sum(f(x))),
}
FORWARD = {
    "jvp": lambda f: lambda x: torch.func.jvp(f, (x,), (torch.ones_like(x),))[1],
    "jacfwd": lambda f: torch.func.jacfwd(lambda x: torch.sum(f(x))),
}
LEVELS = {**REVERSE, **FORWARD, "vmap": torch.func.vmap}
JACOBIANS = {"jacfwd": torch.func.jacfwd, "jacrev": torch.func.jacrev}

# The number of calls in a row, and the factor by which backward and jvp are off.
CALLS = ((1, 1), (1, -1), (1, 3), (2, 1))
NAMES = st.sampled_from(tuple(LEVELS))


def _order(names):
    return len(names) - names.count("vmap")


def _forwards(names):
    return sum(name in FORWARD for name in names)


@keeps("FUNC-14")
def test_nested_transforms_use_the_own_rules(subject, data):
    """Up to three derivatives, one at most in forward mode, and vmaps in between are right."""
    drawn = st.lists(NAMES, min_size=2, max_size=4).filter(lambda names: _order(names) in (1, 2, 3))
    _assert_derivative_right(subject, data, drawn.filter(lambda names: _forwards(names) < 2))


@keeps("FUNC-14", variant="forward")
def test_forward_mode_nests(subject, data):
    """Forward mode of forward mode, with other transforms around and in between, is right."""
    innermost = st.sampled_from(tuple(FORWARD))
    drawn = st.builds(lambda names, last: [*names, last], st.lists(NAMES, min_size=1, max_size=3), innermost)
    drawn = drawn.filter(lambda names: _order(names) in (2, 3))
    _assert_derivative_right(subject, data, drawn.filter(lambda names: _forwards(names) > 1))


def _assert_derivative_right(subject, data, drawn):
    """The nested transforms give the derivative of a power of a number."""
    names = subject.draw(data, drawn, "transforms, the outermost first")
    exponent = subject.draw(data, (2, 3), "power")
    calls, factor = subject.draw(data, CALLS, "calls in a row, and the factor by which the rules are off")
    written = subject.draw(data, (False, True), "batching rule written by hand")
    more = subject.draw(data, ((), (1,), (3,)), "dimensions that are not mapped")
    cls = _power(subject, exponent, factor, written)

    def f(x):
        for _ in range(calls):
            x = cls.apply(x)
        return x

    for name in reversed(names):
        f = LEVELS[name](f)
    x = np.resize((2.0, -3.0, 1.0), (2,) * names.count("vmap") + more)
    got = f(subject.tensor(x))
    order, power = _order(names), exponent**calls
    falling = np.prod([power - n for n in range(order)], dtype=float)
    expected = factor * falling * x ** max(power - order, 0)
    subject.assert_same("derivative by nested transforms", got=got, expected=expected)


def _power(subject, exponent, factor, written):
    """A Function: a power of a number, made of products; its backward and its jvp are off by a factor."""

    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    def rule(ctx, given):
        (x,) = ctx.saved_tensors
        return factor * exponent * _product(x, exponent - 1) * given

    def vmap(info, in_dims, x):
        return cls.apply(x), in_dims[0]

    cls = define(
        subject,
        forward=lambda x: _product(x, exponent),
        setup_context=setup_context,
        backward=rule,
        jvp=rule,
        vmap=vmap if written else None,
    )
    cls.generate_vmap_rule = not written
    return cls


def _product(x, count):
    found = x
    for _ in range(count - 1):
        found = found * x
    return found


@keeps("FUNC-14", variant="hessian", examples=0.4)
def test_hessians_are_right_either_way(subject, data):
    """Hessians forward over reverse, reverse over forward and reverse over reverse are right."""
    polynomial = drawn_function(subject, data, shapes=((), (1,), (2,), (2, 1)), max_outputs=2)
    ways = [(outer, inner) for outer in JACOBIANS for inner in JACOBIANS if "jacrev" in (outer, inner)]
    outer, inner = subject.draw(data, ways, "outer and inner transform")
    wanted = subject.draw(data, some_positions(polynomial), "argnums")
    cotangents = polynomial.cotangents()
    loss = weighted_loss(subject, polynomial, transformable(subject, polynomial), cotangents)
    gradients = JACOBIANS[inner](loss, argnums=wanted)
    got = JACOBIANS[outer](gradients, argnums=wanted)(*float_primals(subject, polynomial))
    assert_hessians(subject, polynomial, wanted, cotangents, got)
