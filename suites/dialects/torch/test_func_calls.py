"""How transforms of torch.func call a custom Function, and what they do not see of it."""

import numpy as np
import torch
from hypothesis import strategies as st

from autograd_conformance.harness.testing.marks import keeps
from autograd_conformance.suites.dialects.torch._func_transforms import (
    drawn_function,
    float_primals,
    positions_of,
    transformable,
    weighted_loss,
)

FACTORS = (2.0, -1.0, 3.0)

# Derivatives of a function of several vectors, at those, by each of them.
DERIVATIVES = {
    "grad": lambda f, xs: torch.func.grad(lambda *each: torch.sum(f(*each)), argnums=tuple(range(len(xs))))(*xs),
    "vjp": lambda f, xs: torch.func.vjp(f, *xs)[1](torch.ones_like(xs[0])),
    "jacrev": lambda f, xs: tuple(torch.diagonal(j) for j in torch.func.jacrev(f, tuple(range(len(xs))))(*xs)),
    "jvp": lambda f, xs: tuple(torch.func.jvp(f, xs, _only(xs, i))[1] for i in range(len(xs))),
}


def _only(xs, position):
    """Tangents: ones for one vector, zeros for the others."""
    return tuple(torch.ones_like(x) if i == position else torch.zeros_like(x) for i, x in enumerate(xs))


@keeps("FUNC-06")
def test_a_captured_tensor_has_no_gradient(subject, data):
    """Under every transform, captured tensors have zero derivatives and direct arguments the right ones."""
    derivatives = DERIVATIVES[subject.draw(data, DERIVATIVES, "transform")]
    captured = subject.draw(data, st.lists(st.booleans(), min_size=2, max_size=3), "tensors captured from outside")
    dtype = subject.draw(data, subject.dtypes, "dtype")
    arrays = [np.array([1.0, 2.0]) + i for i in range(len(captured))]

    def f(*xs):
        outside = [x for x, taken in zip(xs, captured, strict=True) if taken]
        direct = [x for x, taken in zip(xs, captured, strict=True) if not taken]
        return _sum_times(subject, outside)(xs[0].new_ones(2), *direct)

    got = derivatives(f, subject.tensors(arrays, dtype))
    product = np.prod([a for a, taken in zip(arrays, captured, strict=True) if taken], axis=0) * np.ones(2)
    expected = [np.zeros(2) if taken else product for taken in captured]
    subject.assert_all_same("derivatives", got=got, expected=expected)


def _sum_times(subject, outside):
    """A Function: the sum of its arguments times the product of captured tensors."""

    def product(x):
        for factor in outside:
            x = x * factor
        return x

    def setup_context(ctx, inputs, output):
        ctx.count = len(inputs)

    return subject.custom(
        name="Capturing",
        forward=lambda *xs: product(sum(xs)),
        setup_context=setup_context,
        backward=lambda ctx, g: (product(g),) * ctx.count,
        jvp=lambda ctx, *ts: product(sum(t for t in ts if t is not None)),
    )


# Objects assigned to ctx, and how backward gets the tensor out of them.
KEPT = {
    "input": (lambda x, y: x, lambda kept: kept),
    "output": (lambda x, y: y, lambda kept: kept),
    "list of the input": (lambda x, y: [x], lambda kept: kept[0]),
    "dict of the input": (lambda x, y: {"x": x}, lambda kept: kept["x"]),
}


@keeps("FUNC-07")
def test_a_tensor_assigned_to_ctx_is_not_tracked(subject, data):
    """The first derivative is right, and none flows through a tensor that was assigned to ctx."""
    keep, take = KEPT[subject.draw(data, KEPT, "assigned to ctx")]
    factor = subject.draw(data, FACTORS, "factor")
    shape = subject.draw(data, ((), (3,), (2, 2)), "shape")

    def setup_context(ctx, inputs, output):
        ctx.kept = keep(inputs[0], output)

    forward = lambda x: factor * x * x  # noqa: E731
    apply = subject.custom(
        forward=forward, setup_context=setup_context, backward=lambda ctx, g: factor * g * take(ctx.kept)
    )
    first = torch.func.grad(lambda x: torch.sum(apply(x)))
    x = subject.tensor(np.ones(shape))
    subject.assert_same("first derivative", got=first(x), expected=factor * take(keep(x, forward(x))))
    second = torch.func.grad(lambda x: torch.sum(first(x)))(x)
    what = "whether a derivative flows through a tensor that is assigned to ctx"
    subject.assert_equal(what, got=bool(second.any()), expected=False)


@keeps("FUNC-08")
def test_func_grad_differentiates_changes_in_place(subject, data):
    """func.grad is right for one or several in-place changes, in first and second order."""
    factors = subject.draw(data, st.lists(st.sampled_from(FACTORS), min_size=1, max_size=3), "factors, in place")
    returned = subject.draw(data, (True, False), "the output of the last call is used, not the tensor that it changed")
    order = subject.draw(data, (1, 2), "order")
    x = subject.draw(data, st.lists(st.sampled_from((1.0, 2.0, -3.0)), max_size=3), "x")

    def forward(x, factor):
        x *= factor
        return x

    def setup_context(ctx, inputs, output):
        ctx.mark_dirty(inputs[0])
        ctx.factor = inputs[1]

    apply = subject.custom(forward=forward, setup_context=setup_context, backward=lambda ctx, g: (ctx.factor * g, None))

    def loss(x):
        changed = x * x
        for factor in factors:
            output = apply(changed, factor)
        return torch.sum(output if returned else changed)

    derivative = torch.func.grad(loss)
    if order == 2:
        derivative = torch.func.grad(lambda x: torch.sum(torch.func.grad(loss)(x)))
    expected = np.prod(factors) * (2 * np.array(x) if order == 1 else np.full(len(x), 2.0))
    subject.assert_same(f"derivative of order {order}", got=derivative(subject.tensor(np.array(x))), expected=expected)


@keeps("FUNC-09")
def test_vjp_is_backward_by_another_name(subject, data):
    """Every reverse-mode transform accepts a Function that defines vjp."""
    derivatives = DERIVATIVES[subject.draw(data, ("grad", "vjp", "jacrev"), "transform")]
    factors = subject.draw(data, st.lists(st.sampled_from(FACTORS), min_size=1, max_size=3), "factors")

    def weighted(xs):
        return sum(factor * x for factor, x in zip(factors, xs, strict=True))

    apply = subject.custom(
        forward=lambda *xs: weighted(xs), separate=True, vjp=lambda ctx, g: tuple(factor * g for factor in factors)
    )
    xs = subject.tensors([np.ones(2)] * len(factors))
    got = subject.assert_accepted(lambda: derivatives(apply, xs), "a transform of a Function that defines vjp")
    subject.assert_all_same("gradients", got=got, expected=[np.full(2, factor) for factor in factors])


# The slope of a linear function of a vector of ones, as each transform gives it.
SLOPES = {
    "grad": lambda f, x: torch.func.grad(lambda x: torch.sum(f(x)))(x),
    "vjp": lambda f, x: torch.func.vjp(f, x)[1](x)[0],
    "jvp": lambda f, x: torch.func.jvp(f, (x,), (x,))[1],
    "jacrev": lambda f, x: torch.diagonal(torch.func.jacrev(f)(x)),
    "vmap": lambda f, x: torch.func.vmap(f)(x),
    "grad of vmap": lambda f, x: torch.func.grad(lambda x: torch.sum(torch.func.vmap(f)(x)))(x),
}
DEFAULTS = {"tens": 2.0, "ones": 5.0}


def _linear(subject, forward):
    """A Function of a vector, ``tens`` and ``ones``."""

    def setup_context(ctx, inputs, output):
        ctx.slope = _slope(*inputs[1:])

    rules = {
        "backward": lambda ctx, g: (ctx.slope * g, None, None),
        "jvp": lambda ctx, t, *_: ctx.slope * t,
    }
    return subject.custom(forward=forward, setup_context=setup_context, **rules, generate_vmap_rule=True)


def _slope(tens=DEFAULTS["tens"], ones=DEFAULTS["ones"]):
    return 10 * tens + ones


@keeps("FUNC-10")
def test_positional_parameters_may_be_passed_by_keyword(subject, data):
    """Under every transform, positional parameters may be passed by keyword or left out."""
    slope_under = SLOPES[subject.draw(data, SLOPES, "transform")]
    values = {"x": None, "tens": 3.0, "ones": 7.0}
    positional = subject.draw(data, st.integers(0, 3), "number of arguments passed by position")
    named = st.permutations(tuple(values)[positional:]).map(tuple)
    keywords = subject.draw(data, named, "passed by keyword, in this order, as far as not left out")
    omitted = subject.draw(data, st.sets(st.sampled_from(("tens", "ones"))).map(sorted), "left out")
    apply = _linear(subject, lambda x, tens=DEFAULTS["tens"], ones=DEFAULTS["ones"]: x * _slope(tens, ones))

    def call(x):
        given = {**values, "x": x}
        by_keyword = {name: given[name] for name in keywords if name not in omitted}
        return apply(*tuple(given.values())[:positional], **by_keyword)

    got = subject.assert_accepted(lambda: slope_under(call, subject.tensor(np.ones(2))), "arguments by keyword")
    passed = {name: values[name] for name in DEFAULTS if name not in keywords or name not in omitted}
    subject.assert_same("slope", got=got, expected=np.full(2, _slope(**passed)))


@keeps("FUNC-10", variant="refused")
def test_keyword_only_parameters_are_refused(subject, data):
    """Under grad, vjp, jvp and jacrev a keyword-only parameter raises TypeError."""
    _assert_refused(subject, data, ("grad", "vjp", "jvp", "jacrev"), "a keyword-only argument")


@keeps("FUNC-10", variant="vmap")
def test_keyword_only_parameters_are_refused_under_vmap(subject, data):
    """Under vmap a keyword-only parameter raises TypeError."""
    _assert_refused(subject, data, ("vmap", "grad of vmap"), "a keyword-only argument under vmap")


def _assert_refused(subject, data, transforms, what):
    """The call raises, and the closest call that is allowed is accepted."""
    slope_under = SLOPES[subject.draw(data, transforms, "transform")]
    name = subject.draw(data, tuple(DEFAULTS), "keyword-only parameter")
    value = subject.draw(data, (1.0, 3.0), "its value")
    x = subject.tensor(np.ones(2))
    open_to_all = _linear(subject, lambda x, tens=DEFAULTS["tens"], ones=DEFAULTS["ones"]: x * _slope(tens, ones))
    keyword_only = _linear(subject, lambda x, *, tens=DEFAULTS["tens"], ones=DEFAULTS["ones"]: x * _slope(tens, ones))

    def slope_of(apply):
        return slope_under(lambda x: apply(x, **{name: value}), x)

    subject.assert_raises(TypeError, lambda: slope_of(keyword_only), what, naming=["keyword", tuple(DEFAULTS)])
    got = subject.assert_accepted(lambda: slope_of(open_to_all), "a positional parameter by keyword")
    subject.assert_same("slope", got=got, expected=np.full(2, _slope(**{name: value})))


@keeps("FUNC-12")
def test_setup_context_runs_once_for_each_level(subject, data):
    """setup_context runs once per level, each time with its own ctx and needs_input_grad."""
    polynomial = drawn_function(subject, data, powers=(2,))
    places = polynomial.floating
    levels = st.lists(st.sampled_from(("jvp", *positions_of(polynomial))), max_size=3)
    nested = subject.draw(data, levels, "transforms, the outermost first: jvp, or func.grad by this argument")
    tracked = subject.draw(data, st.sets(st.sampled_from(positions_of(polynomial))).map(sorted), "require grad")
    seen = []
    cls = transformable(subject, polynomial)
    right = cls.setup_context

    def setup_context(ctx, inputs, output):
        right(ctx, inputs, output)
        seen.append(ctx)

    cls.setup_context = staticmethod(setup_context)
    f = weighted_loss(subject, polynomial, cls, polynomial.cotangents())
    for level in reversed(nested):
        f = _moved_along_ones(f) if level == "jvp" else _sum_of_gradient(f, level)
    xs = [x.requires_grad_(i in tracked) for i, x in enumerate(float_primals(subject, polynomial))]
    f(*xs)
    asked = [tracked, *([] if level == "jvp" else [level] for level in nested)]
    expected = [tuple(i in [places[p] for p in each] for i in range(len(polynomial.arguments))) for each in asked]
    got = [ctx.needs_input_grad for ctx in seen]
    subject.assert_equal("ctx.needs_input_grad of each run of setup_context", got=got, expected=expected)
    subject.assert_equal("number of different ctx", got=len(set(map(id, seen))), expected=len(nested) + 1)


def _moved_along_ones(f):
    return lambda *xs: torch.func.jvp(f, xs, tuple(map(torch.ones_like, xs)))[1]


def _sum_of_gradient(f, argument):
    return lambda *xs: torch.sum(torch.func.grad(f, argnums=argument)(*xs))
