"""once_differentiable: first derivatives are unchanged, and a second one raises instead of being wrong."""

import numpy as np
from hypothesis import strategies as st

from autograd_conformance.harness.testing.marks import keeps
from autograd_conformance.strategies.generated_functions import flags
from autograd_conformance.suites.contract._derivatives import drawn_cotangents

SAYS = ("once_differentiable",)


def _once(subject, polynomial, seen=None):
    """The generated Function with a once-differentiable backward, which notes whether its operations are recorded."""
    cls = subject.body(polynomial)

    @subject.implementation.ag.once_differentiable
    def backward(ctx, *cotangents):
        if seen is not None:
            seen.extend(subject.implementation.requires_grad(x * 2) for x in ctx.saved_tensors)
        return cls.backward(ctx, *cotangents)

    return subject.define(cls, backward=backward)


def _first(subject, polynomial, cls, cotangents):
    """The function from primals and cotangents to first derivatives, its arguments, and which require grad."""
    f, vjp = subject.call_of(polynomial, cls), subject.implementation.vjp
    xs, given = subject.primals(polynomial), subject.tensors(cotangents, polynomial.dtype)
    places = [n for n, g in enumerate(given) if g is not None]

    def h(*variables):
        moving = dict(zip(places, variables[len(xs) :], strict=True))
        pullback = vjp(f, variables[: len(xs)], track=polynomial.track)[1]
        found = pullback([moving.get(n) for n in range(len(given))], differentiable=True)
        return tuple(g for g, tracked in zip(found, polynomial.track, strict=True) if tracked)

    return h, (*xs, *(given[n] for n in places)), (*polynomial.track, *(True for _ in places))


def _again(subject, data, polynomial):
    """The cotangents of the first derivatives: None for those that are not differentiated again."""
    count = sum(polynomial.track)
    wanted = subject.draw(data, flags(count).filter(any), "differentiated again")
    return subject.tensors([np.ones(polynomial.shape) if flag else None for flag in wanted], polynomial.dtype)


def _with_other_terms(subject, polynomial, cls, squared):
    """The gradients of a sum of the outputs, squared or not, and the cubes of all tensors that require grad."""
    call, vjp = subject.call_of(polynomial, cls), subject.implementation.vjp

    def f(*tensors):
        outputs = call(*tensors)
        terms = [outputs[o] * outputs[o] if squared else outputs[o] for o in polynomial.float_outputs]
        return (*terms, *(x * x * x for x, tracked in zip(tensors, polynomial.track, strict=True) if tracked))

    count = polynomial.outputs.count("float") + sum(polynomial.track)
    cotangents = subject.tensors([np.ones(polynomial.shape)] * count, polynomial.dtype)

    def h(*tensors):
        found = vjp(f, tensors, track=polynomial.track)[1](cotangents, differentiable=True)
        return tuple(g for g, tracked in zip(found, polynomial.track, strict=True) if tracked)

    return h


def _assert_declaration_refused(subject, polynomial, second, what):
    """``second(cls)`` raises for a once-differentiable backward, and is accepted for one that is not declared so."""
    subject.assert_raises(RuntimeError, lambda: second(_once(subject, polynomial)), what, naming=SAYS)
    undeclared = subject.body(polynomial)
    subject.assert_accepted(lambda: second(undeclared), f"{what} that is not declared once-differentiable")


@keeps("ONCE-01")
def test_first_derivatives_are_unchanged_and_unrecorded(subject, data):
    """First derivatives are right with and without create_graph, and backward records nothing."""
    polynomial = subject.polynomial(data)
    cotangents, seen = drawn_cotangents(subject, data, polynomial), []
    tracked = subject.draw(data, (True, False), "cotangents requiring grad")
    h, variables, track = _first(subject, polynomial, _once(subject, polynomial, seen), cotangents)
    track = (*polynomial.track, *(tracked for _ in track[len(polynomial.track) :]))
    got, _ = subject.implementation.vjp(h, variables, track=track)
    expected = [g for g in polynomial.vjp(cotangents) if g is not None]
    subject.assert_all_same("gradients under create_graph", got=got, expected=expected)
    subject.assert_equal("recording in backward", got=seen, expected=[False] * len(polynomial.floating))
    plain = subject.run(polynomial, cls=_once(subject, polynomial)).gradients(cotangents)
    subject.assert_all_same("gradients", got=plain, expected=polynomial.vjp(cotangents))


@keeps("ONCE-02")
def test_backward_of_a_gradient_raises(subject, data):
    """backward() of such a gradient raises and names once_differentiable; without the decorator it works."""
    polynomial = subject.polynomial(data)
    cotangents, weights = drawn_cotangents(subject, data, polynomial), _again(subject, data, polynomial)
    backward = subject.implementation.backward

    def second(cls):
        h, variables, track = _first(subject, polynomial, cls, cotangents)
        return backward(h, variables, weights, track=track)

    _assert_declaration_refused(subject, polynomial, second, "backward of a gradient")


@keeps("ONCE-03")
def test_grad_of_a_gradient_raises(subject, data):
    """grad of such a gradient raises and names once_differentiable, also if unused inputs are allowed."""
    polynomial = subject.polynomial(data)
    cotangents, weights = drawn_cotangents(subject, data, polynomial), _again(subject, data, polynomial)
    h, variables, track = _first(subject, polynomial, _once(subject, polynomial), cotangents)
    _, pullback = subject.implementation.vjp(h, variables, track=track)
    subject.assert_raises(
        RuntimeError, lambda: pullback(weights), "grad of a gradient, unused inputs allowed", naming=SAYS
    )


@keeps("ONCE-04")
def test_other_terms_do_not_hide_a_second_derivative(subject, data):
    """A second derivative raises although other terms of the loss have one, in backward() and in grad."""
    polynomial = subject.polynomial(data, powers=(2,))
    weights = _again(subject, data, polynomial)
    through = subject.draw(data, ("backward", "grad"), "through")
    h = _with_other_terms(subject, polynomial, _once(subject, polynomial), squared=False)
    xs, track = subject.primals(polynomial), polynomial.track

    def second():
        if through == "backward":
            return subject.implementation.backward(h, xs, weights, track=track)
        return subject.implementation.vjp(h, xs, track=track)[1](weights)

    subject.assert_raises(RuntimeError, second, "second derivative next to other terms", naming=SAYS)


@keeps("ONCE-06")
def test_a_gradient_of_none_stays_none(subject, data):
    """None from a once-differentiable backward reaches the caller as None, bare or in a tuple."""
    nones = subject.draw(data, st.lists(st.booleans(), min_size=1, max_size=4), "None")
    differentiable = subject.draw(data, (True, False), "create_graph")
    tracked = subject.draw(data, (True, False), "cotangent requiring grad")
    bare = subject.draw(data, (True, False) if len(nones) == 1 else (False,), "returned bare")

    @subject.implementation.ag.once_differentiable
    def backward(ctx, g):
        found = tuple(None if none else g * 2 for none in nones)
        return found[0] if bare else found

    apply = subject.custom(forward=lambda ctx, *xs: sum(xs[1:], xs[0] * 1), backward=backward)
    _, pullback = subject.implementation.vjp(apply, subject.tensors([[1.0, 2.0]] * len(nones)))
    cotangents = subject.tensors([[3.0, -1.0]])
    got, _ = subject.implementation.vjp(
        lambda *gs: pullback(gs, differentiable=differentiable), cotangents, track=[tracked]
    )
    expected = [None if none else subject.tensor([6.0, -2.0]) for none in nones]
    subject.assert_all_same("gradients", got=got, expected=expected)


@keeps("ONCE-07")
def test_backward_with_other_terms_raises(subject, data):
    """backward() raises if the cotangent requires grad and other terms have second derivatives."""
    polynomial, backward = subject.polynomial(data), subject.implementation.backward
    weights = _again(subject, data, polynomial)
    xs, track = subject.primals(polynomial), polynomial.track

    def second(cls):
        return backward(_with_other_terms(subject, polynomial, cls, squared=True), xs, weights, track=track)

    _assert_declaration_refused(subject, polynomial, second, "backward of a gradient next to other terms")


@keeps("ONCE-07", variant="grad")
def test_grad_with_other_terms_raises(subject, data):
    """grad raises if the cotangent requires grad and other terms have second derivatives."""
    polynomial = subject.polynomial(data)
    weights = _again(subject, data, polynomial)
    h = _with_other_terms(subject, polynomial, _once(subject, polynomial), squared=True)
    _, pullback = subject.implementation.vjp(h, subject.primals(polynomial), track=polynomial.track)
    subject.assert_raises(
        RuntimeError, lambda: pullback(weights), "grad of a gradient next to other terms", naming=SAYS
    )
