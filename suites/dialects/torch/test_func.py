"""Custom Functions under the transforms of torch.func."""

from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import torch
from hypothesis import strategies as st

from autograd_conformance.harness.testing.marks import keeps
from autograd_conformance.suites.contract._jvp_functions import expected_tangents, some_tangents
from autograd_conformance.suites.dialects.torch._func_transforms import (
    assert_hessians,
    assert_jacobians,
    drawn_function,
    expected_floats,
    float_function,
    float_primals,
    positions_of,
    some_positions,
    transformable,
    weighted_loss,
    weights_of,
)
from autograd_conformance.suites.dialects.torch._powers import power_function

FACTORS = (1, -1, 2)

# Each transform, applied to a scalar function of one vector and called there.
TRANSFORMS = {
    "grad": lambda f, x: torch.func.grad(f)(x),
    "grad_and_value": lambda f, x: torch.func.grad_and_value(f)(x),
    "vjp": lambda f, x: torch.func.vjp(f, x)[1](torch.ones_like(torch.sum(x))),
    "jvp": lambda f, x: torch.func.jvp(f, (x,), (torch.ones_like(x),)),
    "vmap": lambda f, x: torch.func.vmap(f)(x),
    "jacrev": lambda f, x: torch.func.jacrev(f)(x),
    "jacfwd": lambda f, x: torch.func.jacfwd(f)(x),
    "hessian": lambda f, x: torch.func.hessian(f)(x),
}


@keeps("FUNC-01")
def test_transforms_ask_for_setup_context(subject, data):
    """Every transform raises for a Function without setup_context, even if it is called on constants only."""
    polynomial = drawn_function(subject, data, shapes=((1,), (3,)))
    transform = TRANSFORMS[subject.draw(data, TRANSFORMS, "transform")]
    constant = subject.draw(data, (False, True), "Function called on constants")
    xs = float_primals(subject, polynomial)

    def transformed(style):
        loss = weighted_loss(subject, style, transformable(subject, style), style.cotangents())
        return transform(lambda x: torch.sum(x) + (loss(*xs) if constant else loss(x, *xs[1:])), xs[0])

    what = "a transform of a Function without setup_context"
    combined = replace(polynomial, separate=False)
    subject.assert_raises(RuntimeError, lambda: transformed(combined), what, naming=["setup_context"])
    subject.assert_accepted(lambda: transformed(polynomial), "a transform of a Function with setup_context")


@keeps("FUNC-02")
def test_func_grad_calls_backward(subject, data):
    """func.grad follows a backward that is wrong by a factor."""
    polynomial, factor, cls = _drawn(subject, data, "backward")
    positions = polynomial.floating
    wanted = subject.draw(data, some_positions(polynomial), "argnums of func.grad")
    cotangents = polynomial.cotangents()
    loss = weighted_loss(subject, polynomial, cls, cotangents)
    got = torch.func.grad(loss, argnums=wanted)(*float_primals(subject, polynomial))
    expected = [factor * polynomial.vjp(cotangents)[positions[i]] for i in wanted]
    subject.assert_all_same("gradients", got=got, expected=list(map(np.asarray, expected)))


@keeps("FUNC-02", variant="vjp")
def test_func_vjp_calls_backward(subject, data):
    """func.vjp follows a backward that is wrong by a factor, in each call of the pullback."""
    polynomial, factor, cls = _drawn(subject, data, "backward")
    calls = subject.draw(data, st.integers(1, 3), "calls of the pullback")
    outputs, pullback = torch.func.vjp(float_function(subject, polynomial, cls), *float_primals(subject, polynomial))
    subject.assert_all_same("outputs", got=outputs, expected=expected_floats(polynomial))
    for salt in range(calls):
        cotangents = polynomial.cotangents(salt=100 * salt)
        got = pullback(weights_of(subject, polynomial, cotangents))
        expected = [factor * polynomial.vjp(cotangents)[i] for i in polynomial.floating]
        subject.assert_all_same("gradients", got=got, expected=list(map(np.asarray, expected)))


@keeps("FUNC-02", variant="later")
def test_a_pullback_outlives_its_transform(subject, data):
    """A pullback works after func.vjp has returned, and autograd differentiates it, whatever backward calls."""
    exponent, factor = subject.draw(data, (2, 3), "power"), subject.draw(data, FACTORS, "factor")
    calling = subject.draw(data, (False, True), "backward calls another Function")
    tracked = subject.draw(data, ((), ("x",), ("cotangent",), ("x", "cotangent")), "require grad")
    size = subject.draw(data, (1, 3), "size")
    values = {"x": np.resize((2.0, -3.0, 1.0), size), "cotangent": np.resize((1.0, 2.0), size)}
    leaves = {name: subject.tensor(value).requires_grad_(name in tracked) for name, value in values.items()}
    y, pullback = torch.func.vjp(power_function(subject, exponent, factor, calling=calling).apply, leaves["x"])
    (got,) = subject.assert_accepted(lambda: pullback(leaves["cotangent"]), "a call of the pullback")
    x, g = values.values()
    slope = factor * exponent * x ** (exponent - 1)
    subject.assert_same("output", got=y, expected=x**exponent)
    subject.assert_same("gradient", got=got, expected=slope * g)
    if tracked:
        each = {"x": factor * exponent * (exponent - 1) * x ** (exponent - 2) * g, "cotangent": slope}
        derivatives = lambda: torch.autograd.grad(got.sum(), [leaves[name] for name in tracked])  # noqa: E731
        found = subject.assert_accepted(derivatives, "derivatives of what the pullback gives")
        subject.assert_all_same("derivatives of it", got=found, expected=[each[name] for name in tracked])


class _Raised(Exception):
    """What a method of a Function raises."""


# The methods of a Function, and the transforms under which they run.
STOPPED = {
    "forward": tuple(TRANSFORMS),
    "setup_context": tuple(TRANSFORMS),
    "backward": ("grad", "grad_and_value", "vjp", "jacrev", "hessian"),
    "jvp": ("jvp", "jacfwd"),
}


@keeps("FUNC-15")
def test_a_transform_that_raises_is_over(subject, data):
    """After an exception in a transform, within another or not, ordinary calls and transforms are as before."""
    method = subject.draw(data, STOPPED, "method that raises")
    transform = TRANSFORMS[subject.draw(data, STOPPED[method], "transform")]
    around = subject.draw(data, (None, "grad", "vjp", "jvp", "jacrev", "jacfwd"), "transform around it")
    right = power_function(subject, 2, 1)

    def stop(*_):
        raise _Raised

    wrong = subject.define(right, **{method: stop})
    x = subject.tensor([1.0, 2.0])
    stopped = lambda x: transform(lambda x: torch.sum(wrong.apply(x)), x)  # noqa: E731
    what = f"a transform of a Function whose {method} raises"
    action = lambda: TRANSFORMS[around](stopped, x) if around else stopped(x)  # noqa: E731
    subject.assert_raises(_Raised, action, what)
    leaf = x.clone().requires_grad_()
    call = lambda: torch.autograd.grad(torch.sum(right.apply(leaf)), leaf)  # noqa: E731
    (got,) = subject.assert_accepted(call, "an ordinary call after it")
    subject.assert_same("gradient after an exception in a transform", got=got, expected=2 * x)
    again = lambda: torch.func.grad(lambda x: torch.sum(right.apply(x)))(x)  # noqa: E731
    got = subject.assert_accepted(again, "a transform after it")
    subject.assert_same("gradient by func.grad after it", got=got, expected=2 * x)


# The gradient of a loss by one of its tensors.
INNER = {
    "grad": lambda loss, first, xs: torch.func.grad(loss, argnums=first)(*xs),
    "vjp": lambda loss, first, xs: _with_ones(*torch.func.vjp(loss, *xs))[first],
    "jacrev": lambda loss, first, xs: torch.func.jacrev(loss, argnums=first)(*xs),
}


def _with_ones(output, pullback):
    return pullback(torch.ones_like(output))


@keeps("FUNC-02", variant="nested")
def test_nested_func_grad_differentiates_backward(subject, data):
    """A nested transform differentiates the operations of backward."""
    polynomial, factor, cls = _drawn(subject, data, "backward")
    positions, cotangents = polynomial.floating, polynomial.cotangents()
    each = st.sampled_from(positions_of(polynomial))
    first, second = subject.draw(data, st.tuples(each, each), "argnums, inner and outer")
    loss = weighted_loss(subject, polynomial, cls, cotangents)
    inner = INNER[subject.draw(data, INNER, "inner transform")]
    xs = float_primals(subject, polynomial)
    got = torch.func.grad(lambda *xs: torch.sum(inner(loss, first, xs)), argnums=second)(*xs)
    curvature = polynomial.power * (polynomial.power - 1) * factor * (first == second)
    expected = curvature * replace(polynomial, power=1).vjp(cotangents)[positions[first]]
    subject.assert_same("second derivative", got=got, expected=np.asarray(expected))


@keeps("FUNC-03")
def test_func_jvp_calls_jvp(subject, data):
    """func.jvp follows a jvp that is wrong by a factor."""
    polynomial, factor, cls = _drawn(subject, data, "jvp")
    tangents = some_tangents(polynomial, polynomial.floating)
    given = subject.tensors([tangents[i] for i in polynomial.floating], polynomial.dtype)
    outputs, got = torch.func.jvp(float_function(subject, polynomial, cls), float_primals(subject, polynomial), given)
    subject.assert_all_same("outputs", got=outputs, expected=expected_floats(polynomial))
    expected = [t for t in expected_tangents(polynomial, tangents, factor) if t is not None]
    subject.assert_all_same("tangents", got=got, expected=expected)


@keeps("FUNC-03", variant="missing")
def test_func_jvp_needs_a_jvp(subject, data):
    """func.jvp raises NotImplementedError for a Function without jvp."""
    polynomial = drawn_function(subject, data)
    xs = float_primals(subject, polynomial)

    def moved(cls):
        return torch.func.jvp(float_function(subject, polynomial, cls), xs, tuple(map(torch.ones_like, xs)))

    missing = subject.body(polynomial)
    what = "func.jvp of a Function without jvp"
    subject.assert_raises(NotImplementedError, lambda: moved(missing), what, naming=["jvp"])
    subject.assert_accepted(lambda: moved(transformable(subject, polynomial)), "func.jvp of a Function with jvp")


@keeps("FUNC-04")
def test_jacrev_needs_no_batching_rule(subject, data):
    """jacrev works for a Function without a batching rule."""
    polynomial, wanted, xs = _drawn_for_jacobians(subject, data)
    f = float_function(subject, polynomial, transformable(subject, polynomial, rule=False))
    got = subject.assert_accepted(lambda: torch.func.jacrev(f, argnums=wanted)(*xs), "jacrev without a batching rule")
    assert_jacobians(subject, polynomial, wanted, got)


@keeps("FUNC-04", variant="jacfwd", examples=0.4)
def test_jacfwd_needs_a_batching_rule(subject, data):
    """jacfwd raises without a batching rule and is right with one."""
    polynomial, wanted, xs = _drawn_for_jacobians(subject, data)

    def jacobians(rule):
        f = float_function(subject, polynomial, transformable(subject, polynomial, rule=rule))
        return torch.func.jacfwd(f, argnums=wanted)(*xs)

    what = "jacfwd without a batching rule"
    subject.assert_raises(RuntimeError, lambda: jacobians(rule=False), what, naming=["vmap"])
    assert_jacobians(subject, polynomial, wanted, jacobians(rule=True))


@keeps("FUNC-04", variant="hessian", examples=0.4)
def test_hessian_needs_a_batching_rule(subject, data):
    """hessian raises without a batching rule and is right with one."""
    polynomial, wanted, xs = _drawn_for_jacobians(subject, data)
    cotangents = polynomial.cotangents()

    def hessian(rule):
        loss = weighted_loss(subject, polynomial, transformable(subject, polynomial, rule=rule), cotangents)
        return torch.func.hessian(loss, argnums=wanted)(*xs)

    what = "hessian without a batching rule"
    subject.assert_raises(RuntimeError, lambda: hessian(rule=False), what, naming=["vmap"])
    assert_hessians(subject, polynomial, wanted, cotangents, hessian(rule=True))


def _drawn(subject, data, method):
    """A Function, the factor by which one of its methods is off, and its class."""
    polynomial = drawn_function(subject, data)
    factor = subject.draw(data, FACTORS, f"factor by which {method} is off")
    return polynomial, factor, transformable(subject, polynomial, **{method: factor})


def _drawn_for_jacobians(subject, data):
    polynomial = drawn_function(subject, data, shapes=((), (1,), (2,), (2, 1)), max_outputs=2)
    wanted = subject.draw(data, some_positions(polynomial), "argnums")
    return polynomial, wanted, float_primals(subject, polynomial)


@keeps("FUNC-05")
def test_a_missing_gradient_is_zero_under_func_grad(subject, data):
    """None from backward becomes zeros under func.grad."""
    polynomial = drawn_function(subject, data)
    positions, cotangents = polynomial.floating, polynomial.cotangents()
    wanted = subject.draw(data, some_positions(polynomial), "argnums of func.grad")
    missing = subject.draw(data, some_positions(polynomial), "arguments for which backward returns None")
    cls = transformable(subject, polynomial)
    right = cls.backward

    def backward(ctx, *given):
        found = list(right(ctx, *given))
        for i in missing:
            found[positions[i]] = None
        return tuple(found)

    cls.backward = staticmethod(backward)
    loss = weighted_loss(subject, polynomial, cls, cotangents)
    got = torch.func.grad(loss, argnums=wanted)(*float_primals(subject, polynomial))
    gradients = polynomial.vjp(cotangents)
    expected = [np.zeros(polynomial.shape) if i in missing else gradients[positions[i]] for i in wanted]
    subject.assert_all_same("gradients", got=got, expected=expected)


@keeps("FUNC-05", variant="expanded")
def test_an_expanded_gradient_is_summed_under_func_grad(subject, data):
    """A gradient with broadcast dimensions is summed to its input's shape under func.grad."""
    polynomial = drawn_function(subject, data, max_arguments=2, max_outputs=1, shapes=((), (1,), (3,), (2, 1)))
    lead = subject.draw(data, ((), (1,), (2,), (2, 3)), "dimensions added to the gradients")
    stretched = subject.draw(data, (1, 2), "size to which dimensions of size 1 are expanded")
    shape = (*lead, *(stretched if size == 1 else size for size in polynomial.shape))
    cotangents, cls = polynomial.cotangents(), transformable(subject, polynomial)
    right = cls.backward
    cls.backward = staticmethod(lambda *given: tuple(None if g is None else g.expand(shape) for g in right(*given)))
    loss = weighted_loss(subject, polynomial, cls, cotangents)
    got = torch.func.grad(loss, argnums=tuple(positions_of(polynomial)))(*float_primals(subject, polynomial))
    copies = np.prod(shape, dtype=int) / np.prod(polynomial.shape, dtype=int)
    expected = [np.asarray(copies * polynomial.vjp(cotangents)[i]) for i in polynomial.floating]
    subject.assert_all_same("gradients", got=got, expected=expected)


@keeps("FUNC-05", variant="materialize")
def test_unused_outputs_give_none_under_func_grad_if_asked_to(subject, data):
    """Unused outputs give zeros or None under func.grad, as set_materialize_grads says."""
    polynomial = drawn_function(subject, data, materialize=None)
    floats = polynomial.float_outputs
    used = subject.draw(data, st.sets(st.sampled_from(floats), min_size=1).map(sorted), "outputs that are used")
    cotangents = polynomial.cotangents([o in used for o in range(len(polynomial.outputs))])
    cls, seen = transformable(subject, polynomial), []
    right = cls.backward

    def backward(ctx, *given):
        seen[:] = [given[o] for o in floats]
        return right(ctx, *given)

    cls.backward = staticmethod(backward)
    f, weights = (
        float_function(subject, polynomial, cls),
        subject.tensors([cotangents[o] for o in floats], polynomial.dtype),
    )

    def loss(*xs):
        return sum(torch.sum(y * g) for y, g in zip(f(*xs), weights, strict=True) if g is not None)

    torch.func.grad(loss)(*float_primals(subject, polynomial))
    zeros = np.zeros(polynomial.shape) if polynomial.materialize else None
    expected = [zeros if cotangents[o] is None else cotangents[o] for o in floats]
    subject.assert_all_same("cotangents", got=seen, expected=expected)


@keeps("FUNC-13")
def test_no_grad_counts_within_func_grad_alone(subject, data):
    """func.grad respects no_grad in its function, and none around it."""
    _check_no_grad(subject, data, "grad")


@keeps("FUNC-13", variant="vjp")
def test_no_grad_counts_within_func_vjp_alone(subject, data):
    """func.vjp respects no_grad in its function, and none around it."""
    _check_no_grad(subject, data, "vjp")


@keeps("FUNC-13", variant="jacrev")
def test_no_grad_counts_within_jacrev_alone(subject, data):
    """jacrev respects no_grad in its function, and none around it."""
    _check_no_grad(subject, data, "jacrev")


def _check_no_grad(subject, data, transform):
    polynomial, factor, cls = _drawn(subject, data, "backward")
    first = subject.draw(data, positions_of(polynomial), "argument to differentiate")
    inside, around = (subject.draw(data, (False, True), f"no_grad {where} the transform") for where in ("in", "around"))
    cotangents = polynomial.cotangents()
    loss = weighted_loss(subject, polynomial, cls, cotangents)

    def f(*xs):
        with torch.no_grad() if inside else nullcontext():
            more = loss(*xs)
        return loss(*xs) + more

    with torch.no_grad() if around else nullcontext():
        got = INNER[transform](f, first, float_primals(subject, polynomial))
    expected = factor * polynomial.vjp(cotangents)[polynomial.floating[first]] * (1 if inside else 2)
    subject.assert_same("gradient", got=got, expected=np.asarray(expected))
