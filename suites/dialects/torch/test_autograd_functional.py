"""torch.autograd.functional: products with Jacobians and Hessians of a custom Function, and these themselves."""

import numpy as np
import torch
from torch.autograd import functional

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
    weights_of,
)

SMALL = ((), (1,), (2,), (2, 1))


@keeps("FUNC-11")
def test_functional_vjp(subject, data):
    """functional.vjp gives right outputs and gradients for either style of forward."""
    polynomial = drawn_function(subject, data, separate=None)
    cotangents = polynomial.cotangents()
    f, xs, given = _plain(subject, polynomial, cotangents)
    outputs, got = functional.vjp(f, xs, given)
    subject.assert_all_same("outputs", got=outputs, expected=expected_floats(polynomial))
    expected = [polynomial.vjp(cotangents)[i] for i in polynomial.floating]
    subject.assert_all_same("gradients", got=got, expected=expected)


@keeps("FUNC-11", variant="jvp")
def test_functional_jvp_needs_no_jvp(subject, data):
    """functional.jvp gives right tangents although the Function has no jvp."""
    polynomial = drawn_function(subject, data, separate=None)
    tangents = some_tangents(polynomial, polynomial.floating)
    given = subject.tensors([tangents[i] for i in polynomial.floating], polynomial.dtype)
    f, xs, _ = _plain(subject, polynomial, polynomial.cotangents())
    outputs, got = functional.jvp(f, xs, given)
    subject.assert_all_same("outputs", got=outputs, expected=expected_floats(polynomial))
    expected = [t for t in expected_tangents(polynomial, tangents) if t is not None]
    subject.assert_all_same("tangents", got=got, expected=expected)


@keeps("FUNC-11", variant="jacobian", examples=0.4)
def test_functional_jacobian(subject, data):
    """functional.jacobian is right, vectorized or not."""
    polynomial = drawn_function(subject, data, separate=None, shapes=SMALL)
    vectorize = subject.draw(data, (False, True), "vectorize")
    f, xs, _ = _plain(subject, polynomial, polynomial.cotangents())
    got = functional.jacobian(f, xs, vectorize=vectorize)
    assert_jacobians(subject, polynomial, positions_of(polynomial), got)


@keeps("FUNC-11", variant="hessian", examples=0.4)
def test_functional_hessian(subject, data):
    """functional.hessian is right."""
    polynomial = drawn_function(subject, data, separate=None, shapes=SMALL, powers=(2,))
    cotangents = polynomial.cotangents()
    f, xs, given = _plain(subject, polynomial, cotangents)
    got = functional.hessian(lambda *xs: sum(torch.sum(y * g) for y, g in zip(f(*xs), given, strict=True)), xs)
    assert_hessians(subject, polynomial, positions_of(polynomial), cotangents, got)


# Products with the Hessian: by which function, and whether a number of the caller multiplies from the left.
PRODUCTS = {"vhp": functional.vhp, "hvp": functional.hvp}


@keeps("FUNC-11", variant="products")
def test_products_with_the_hessian(subject, data):
    """vhp and hvp give the product with the Hessian, for a tensor or a tuple of them, recorded if wanted."""
    name = subject.draw(data, PRODUCTS, "function")
    bare = subject.draw(data, (False, True), "a tensor, not a tuple")
    recorded = subject.draw(data, ({}, {"create_graph": False}, {"create_graph": True}), "options")
    unit = subject.draw(data, (False, True), "of one element, without a vector")
    shape = () if unit else (2,)
    x, y = (subject.tensor(np.resize(values, shape)).requires_grad_() for values in ((2.0, -3.0), (5.0, 7.0)))
    v = [torch.full_like(t, n) for n, t in ((1.0, x), (2.0, y))]
    # Cubic, so that the product still depends on the arguments; backward has twice its value.
    cube = _cube(subject)
    f = (lambda a: cube(a).sum()) if bare else (lambda a, b: (cube(a) * b).sum())
    given = (x,) if unit and bare else ((x, v[0]) if bare else ((x, y), tuple(v)))
    value, got = PRODUCTS[name](f, *given, **recorded)
    expected = [12 * x * v[0]] if bare else [12 * x * y * v[0] + 6 * x**2 * v[1], 6 * x**2 * v[0]]
    subject.assert_same("value", got=value, expected=f(*((x,) if bare else (x, y))).detach())
    products = [got] if bare else got
    subject.assert_equal("type of the product", got=isinstance(got, torch.Tensor), expected=bare)
    subject.assert_all_same(f"product by {name}", got=products, expected=[e.detach() for e in expected])
    on = [bool(recorded.get("create_graph"))] * len(products)
    subject.assert_equal("requires_grad of the product", got=[p.requires_grad for p in products], expected=on)


def _cube(subject):
    """The cube of a tensor, whose backward is twice as large."""
    return subject.custom(
        forward=lambda x: x**3,
        setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs),
        backward=lambda ctx, g: 6 * ctx.saved_tensors[0] ** 2 * g,
        separate=False,
    )


# Derivatives by autograd.functional of a function of x and y, and which part of it concerns y.
STRICT = {
    "vjp": (lambda f, xs, **o: functional.vjp(f, xs, torch.ones_like(xs[0]), **o)[1][1]),
    "jvp": (lambda f, xs, **o: functional.jvp(lambda y: f(xs[0], y), xs[1], torch.ones_like(xs[1]), **o)[1]),
    "jacobian": (lambda f, xs, **o: functional.jacobian(f, xs, **o)[1]),
    "hessian": (lambda f, xs, **o: functional.hessian(lambda *each: f(*each).sum(), xs, **o)[1][1]),
    "vhp": (lambda f, xs, **o: functional.vhp(lambda *each: f(*each).sum(), xs, tuple(xs), **o)[1][1]),
    "hvp": (lambda f, xs, **o: functional.hvp(lambda *each: f(*each).sum(), xs, tuple(xs), **o)[1][1]),
}


@keeps("FUNC-11", variant="strict")
def test_an_independent_input_has_zeros_unless_strict(subject, data):
    """For an input on which the output does not depend there are zeros, and an error with strict=True."""
    name = subject.draw(data, STRICT, "function")
    options = subject.draw(data, ({}, {"strict": False}), "options")
    cube, xs = _cube(subject), tuple(subject.tensors([np.array([2.0, -3.0]), np.ones(2)]))

    def f(x, y):
        return cube(x)

    got = subject.assert_accepted(lambda: STRICT[name](f, xs, **options), f"functional.{name}")
    subject.assert_same("what concerns the other input", got=got, expected=torch.zeros_like(got))
    refused = lambda: STRICT[name](f, xs, strict=True)  # noqa: E731
    subject.assert_raises(
        RuntimeError, refused, f"functional.{name} with strict=True", naming=[("independent", "differentiable")]
    )


def _plain(subject, polynomial, cotangents):
    """The Function without jvp as a function of its floating tensors, these tensors, and its cotangents."""
    f = float_function(subject, polynomial, subject.body(polynomial))
    return f, float_primals(subject, polynomial), weights_of(subject, polynomial, cotangents)
