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
from autograd_conformance.suites.dialects.torch._powers import save_inputs

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


# Products with a Jacobian or a Hessian, of cube(x) and of cube(x) * y, and the sum of the slopes of a product in x.
# Backward makes each slope of the cube twice as large.
_TIMES_HESSIAN = (
    lambda x, y, v, w: ([12 * x * v], 12 * v),
    lambda x, y, v, w: ([12 * x * y * v + 6 * x**2 * w, 6 * x**2 * v], 12 * (y * v + x * w + x * v)),
)
PRODUCTS = {
    "vjp": (
        lambda x, y, v, w: ([6 * x**2 * v], 12 * x * v),
        lambda x, y, v, w: ([6 * x**2 * y * v, x**3 * v], 12 * x * y * v + 6 * x**2 * v),
    ),
    "jvp": (
        lambda x, y, v, w: ([6 * x**2 * v], 12 * x * v),
        lambda x, y, v, w: ([6 * x**2 * y * v + x**3 * w], 12 * x * y * v + 6 * x**2 * w),
    ),
    "vhp": _TIMES_HESSIAN,
    "hvp": _TIMES_HESSIAN,
}


@keeps("FUNC-11", variant="products")
def test_products_with_jacobians_and_hessians(subject, data):
    """A product is right for a tensor or a tuple, also without a vector, and can be differentiated if wanted."""
    name = subject.draw(data, PRODUCTS, "function")
    bare = subject.draw(data, (False, True), "a tensor, not a tuple")
    recorded = subject.draw(data, ({"create_graph": True}, {}), "options")
    unit = subject.draw(data, (False, True), "of one element, without a vector")
    arrays = [np.resize(values, () if unit else (2,)) for values in ((2.0, -3.0), (5.0, 7.0))]
    vectors = [np.full_like(arrays[0], n) for n in (1.0 if unit and bare else 3.0, 2.0)]
    xs = [subject.tensor(x).requires_grad_() for x in (arrays[:1] if bare else arrays)]
    f = _function_of(subject, bare, summed=PRODUCTS[name] is _TIMES_HESSIAN)
    given = _like_inputs(subject.tensors(vectors), bare or name == "vjp")
    value, got = getattr(functional, name)(f, _like_inputs(xs, bare), *([] if unit and bare else [given]), **recorded)
    expected, slope = PRODUCTS[name][0 if bare else 1](*arrays, *vectors)
    subject.assert_same("value", got=value, expected=f(*xs).detach())
    subject.assert_equal("type of the product", got=isinstance(got, torch.Tensor), expected=bare or name == "jvp")
    products = [got] if isinstance(got, torch.Tensor) else got
    subject.assert_all_same(f"product by {name}", got=products, expected=expected)
    on = [bool(recorded)] * len(products)
    subject.assert_equal("requires_grad of the product", got=[p.requires_grad for p in products], expected=on)
    if recorded:
        (again,) = torch.autograd.grad(sum(p.sum() for p in products), xs[:1])
        subject.assert_same(f"derivative of the product by {name}", got=again, expected=slope)


def _function_of(subject, bare, summed=True):
    """The cube of a tensor or, unless ``bare``, its product with a second one, as a sum if it has to be a number."""
    cube, total = _cube(subject), torch.sum if summed else lambda y: y
    return (lambda x: total(cube(x))) if bare else (lambda x, y: total(cube(x) * y))


def _like_inputs(tensors, bare):
    return tensors[0] if bare else tuple(tensors)


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


# Ways to compute a Jacobian or the outer Jacobian of a Hessian.
WAYS = {
    "row by row": {},
    "vectorized": {"vectorize": True, "strategy": "reverse-mode"},
    "in forward mode": {"vectorize": True, "strategy": "forward-mode"},
}


def _curved(subject):
    """The cube of a tensor. Its slope, and the slope of that, are twice as large by backward, four times by jvp."""
    slope = subject.custom(
        forward=lambda x: 6 * x**2,
        setup_context=save_inputs,
        backward=lambda ctx, g: 24 * ctx.saved_tensors[0] * g,
        jvp=lambda ctx, t: 48 * ctx.saved_tensors[0] * t,
        separate=False,
    )
    return subject.custom(
        forward=lambda x: x**3,
        setup_context=save_inputs,
        backward=lambda ctx, g: slope(ctx.saved_tensors[0]) * g,
        jvp=lambda ctx, t: 12 * ctx.saved_tensors[0] ** 2 * t,
        separate=False,
    )


# Of such a cube times y: all blocks, where the last derivative is ``c`` times that of backward; the sum of their slopes
# in x; and the function.
MATRICES = {
    "jacobian": (
        lambda x, y, c: [np.diag(c * 6 * x**2 * y)[1:], np.diag(x**3)[1:]],
        lambda x, y: (24 * x * y + 6 * x**2) * [0, 1, 1],
        lambda curved, kind: lambda x, y: ((curved(x) * y)[1:].to(kind),),
    ),
    "hessian": (
        lambda x, y, c: [np.diag(d) for d in (c * 24 * x * y, 6 * x**2, c * 6 * x**2, 0 * x)],
        lambda x, y: 24 * y + 48 * x,
        lambda curved, kind: lambda x, y: (curved(x) * y).to(kind).sum(),
    ),
}


def _matrix(name, way, f, xs, **options):
    """The Jacobian or the Hessian, as the list of its blocks."""
    chosen = {{"strategy": "outer_jacobian_strategy"}.get(key, key): value for key, value in way.items()}
    found = getattr(functional, name)(f, xs, **(way if name == "jacobian" else chosen), **options)
    return [block for row in found for block in row]


@keeps("FUNC-25", examples=0.6)
def test_matrices_are_the_same_however_they_are_computed(subject, data):
    """A matrix is right row by row, vectorized, and in forward mode, and can be differentiated if wanted."""
    name = subject.draw(data, MATRICES, "function")
    way = subject.draw(data, WAYS, "computed")
    forward = way == "in forward mode"
    recorded = not forward and subject.draw(data, (False, True), "create_graph")
    kind = getattr(torch, subject.draw(data, ("float32", "float16"), "dtype of the output"))
    x, y = np.array([2.0, -3.0, 1.0]), np.array([1.0, 2.0, -1.0])
    xs = tuple(t.requires_grad_(recorded) for t in subject.tensors([x, y], "float32"))
    blocks, slope, function = MATRICES[name]
    got = _matrix(name, WAYS[way], function(_curved(subject), kind), xs, create_graph=recorded)
    subject.assert_all_same(f"blocks of the {name}", got=got, expected=blocks(x, y, 2 if forward else 1))
    of_output = forward and name == "jacobian"
    dtypes = [kind if of_output else torch.float32] * len(got)
    subject.assert_equal(f"dtypes of the {name}", got=[block.dtype for block in got], expected=dtypes)
    if recorded:
        (again,) = torch.autograd.grad(sum(block.sum() for block in got), xs[:1])
        subject.assert_same(f"derivative of the {name}", got=again, expected=slope(x, y))


def _misfits(subject, count):
    """Vectors that do not fit so many tensors of two elements."""
    one, two, three = subject.tensors([np.ones(n) for n in (1, 2, 3)])
    fitting = (two,) * count
    return {
        "longer": (*fitting[1:], three),
        "of one element": (*fitting[1:], one),
        "of one tensor more": (*fitting, two),
        "left out": None,
    }


@keeps("FUNC-25", variant="refused")
def test_vectors_that_do_not_fit_are_refused(subject, data):
    """A product raises for a vector of another size or number, or without one; forward mode does if not vectorized."""
    name = subject.draw(data, (*PRODUCTS, *MATRICES), "function")
    x, y = (subject.tensor(values) for values in ([2.0, -3.0], [5.0, 7.0]))
    f = _function_of(subject, bare=False, summed=name not in ("vjp", "jvp", "jacobian"))
    if name in MATRICES:
        way = {"strategy": "forward-mode"}
        action = lambda: _matrix(name, way, f, (x, y))  # noqa: E731
        subject.assert_raises(RuntimeError, action, f"{name} in forward mode", naming=["vectorize"])
        return
    vectors = _misfits(subject, 1 if name == "vjp" else 2)
    wrong = subject.draw(data, vectors, "vector")
    action = lambda: getattr(functional, name)(f, (x, y), vectors[wrong])  # noqa: E731
    subject.assert_raises(RuntimeError, action, f"{name} with a vector that is {wrong}", naming=["v"])
