"""What the forward-mode rule of a Function has to return."""

import numpy as np
from hypothesis import strategies as st

from autograd_conformance.harness.testing.marks import keeps
from autograd_conformance.strategies.generated_functions import DTYPES, SHAPES, flags, polynomials
from autograd_conformance.suites.contract._jvp_functions import (
    drawn_jvp_function,
    drawn_tangents,
    expected_tangents,
    output_tangents,
    right_rule,
    with_jvp,
)

FACTORS = (2.0, -1.0, 3.0)


@keeps("JVP-05")
def test_jvp_returns_one_tangent_for_each_output(subject, data):
    """A jvp that returns too few or too many tangents raises, even if the surplus ones are None."""
    polynomial = drawn_jvp_function(subject, data)
    tangents = drawn_tangents(subject, data, polynomial)
    right = len(polynomial.outputs)
    count = subject.draw(data, st.integers(0, right + 2).filter(lambda n: n != right), "number of tangents from jvp")
    surplus = subject.draw(data, flags(2), "surplus tangents are None")
    rule = right_rule(polynomial)

    def jvp(ctx, *given):
        found = rule(ctx, *given)
        some = found[polynomial.outputs.index("float")]
        return (*found, *(None if none else some for none in surplus))[:count]

    wrong = with_jvp(subject, polynomial, jvp)
    what = "forward mode of a Function whose jvp returns another number of tangents"
    action = lambda: output_tangents(subject, polynomial, wrong, tangents)  # noqa: E731
    subject.assert_raises(subject.implementation.refusals, action, what, naming=[right, count])
    got = output_tangents(subject, polynomial, with_jvp(subject, polynomial), tangents)
    expected = subject.returned(expected_tangents(polynomial, tangents), polynomial.shape)
    subject.assert_all_same("tangents", got=got, expected=expected)


@keeps("JVP-06")
def test_what_is_not_differentiable_gets_no_tangent(subject, data):
    """A tangent for a marked or an integer output raises."""
    polynomial = _with_output(subject, data, "marked", "integers")
    tangents = drawn_tangents(subject, data, polynomial)
    positions = [o for o, kind in enumerate(polynomial.outputs) if kind in ("marked", "integers")]
    position = subject.draw(data, positions, "output that gets a tangent")
    rule = right_rule(polynomial)

    def jvp(ctx, *given):
        found = list(rule(ctx, *given))
        found[position] = found[polynomial.outputs.index("float")]
        return tuple(found)

    cls = with_jvp(subject, polynomial, jvp)
    what = "a tangent for an output that is not differentiable"
    facts = ["jvp", ("output", "position"), (position, position + 1)]
    subject.assert_raises(
        subject.implementation.refusals, lambda: output_tangents(subject, polynomial, cls, tangents), what, naming=facts
    )


@keeps("JVP-06", variant="none")
def test_jvp_returns_none_for_what_has_no_tangent(subject, data):
    """None from jvp is accepted for marked outputs, integer outputs and non-tensors."""
    polynomial = _with_output(subject, data, "marked", "integers", "static")
    tangents = drawn_tangents(subject, data, polynomial)
    cls = with_jvp(subject, polynomial)
    what = "a None from jvp for what has no tangent"
    got = subject.assert_accepted(lambda: output_tangents(subject, polynomial, cls, tangents), what)
    expected = subject.returned(expected_tangents(polynomial, tangents), polynomial.shape)
    subject.assert_all_same("tangents", got=got, expected=expected)


@keeps("JVP-07")
def test_jvp_returns_none_for_any_output(subject, data):
    """None from jvp is accepted for a differentiable output too, and means a zero tangent."""
    polynomial = drawn_jvp_function(subject, data, materialize=None, outputs=("float",))
    tangents = drawn_tangents(subject, data, polynomial)
    every = range(len(polynomial.outputs))
    some = st.sets(st.sampled_from(every), min_size=1).map(sorted)
    dropped = subject.draw(data, some, "outputs for which jvp returns None")
    rule = right_rule(polynomial)

    def jvp(ctx, *given):
        return tuple(None if o in dropped else t for o, t in enumerate(rule(ctx, *given)))

    cls = with_jvp(subject, polynomial, jvp)
    what = "a None from jvp for a floating output"
    got = subject.assert_accepted(lambda: output_tangents(subject, polynomial, cls, tangents), what)
    expected = [0.0 * t if o in dropped else t for o, t in enumerate(expected_tangents(polynomial, tangents))]
    zeros = [np.zeros(polynomial.shape) if t is None else t for t in got]
    subject.assert_all_same("tangents", got=zeros, expected=list(map(np.asarray, expected)))


@keeps("JVP-08")
def test_a_tangent_has_the_shape_of_its_output(subject, data):
    """A tangent whose shape is not its output's raises."""
    polynomial = drawn_jvp_function(subject, data)
    tangents = drawn_tangents(subject, data, polynomial)
    shapes = [shape for shape in (*SHAPES, (4,), (2, 1, 3)) if shape != polynomial.shape]
    shape = subject.draw(data, shapes, "shape of a tangent from jvp")
    position = subject.draw(data, polynomial.float_outputs, "output that it is for")
    wrong = subject.tensor(np.ones(shape), polynomial.dtype)
    cls = with_jvp(subject, polynomial, _replacing(polynomial, position, lambda _: wrong))
    what = "a tangent of another shape than its output"
    facts = [("shape", "shapes", "size"), *polynomial.shape]
    subject.assert_raises(
        subject.implementation.refusals, lambda: output_tangents(subject, polynomial, cls, tangents), what, naming=facts
    )
    right = with_jvp(subject, polynomial)
    subject.assert_accepted(
        lambda: output_tangents(subject, polynomial, right, tangents), "a tangent of the shape of its output"
    )


@keeps("JVP-09")
def test_a_tangent_keeps_its_dtype(subject, data):
    """A tangent of another dtype than its output comes back in its own dtype, with its values."""
    polynomial = drawn_jvp_function(subject, data)
    tangents = drawn_tangents(subject, data, polynomial)
    dtypes = [d for d in DTYPES if d in subject.implementation.dtypes]
    dtype = subject.draw(data, dtypes, "dtype of a tangent from jvp")
    position = subject.draw(data, polynomial.float_outputs, "output that it is for")
    values = expected_tangents(polynomial, tangents)[position]
    cls = with_jvp(subject, polynomial, _replacing(polynomial, position, lambda _: subject.tensor(values, dtype)))
    found = output_tangents(subject, polynomial, cls, tangents)[position]
    subject.assert_equal("dtype of the tangent", got=subject.implementation.describe(found).dtype, expected=dtype)
    subject.assert_same("tangent", got=found, expected=values)


# Ways to return a view of an array of shape (2, 3), or the array itself.
VIEWS = {
    "x": lambda xp, x: x,
    "reshape(x, (2, 3))": lambda xp, x: xp.reshape(x, (2, 3)),
    "reshape(x, (6,))": lambda xp, x: xp.reshape(x, (6,)),
    "permute_dims(x, (1, 0))": lambda xp, x: xp.permute_dims(x, (1, 0)),
    "broadcast_to(x, (2, 2, 3))": lambda xp, x: xp.broadcast_to(x, (2, 2, 3)),
    "x[1]": lambda xp, x: x[1],
    "x[:, ::2]": lambda xp, x: x[:, ::2],
}
COPIES = {
    "a copy": lambda xp, t: xp.copy(t),
    "a product": lambda xp, t: 1 * t,
    "zeros": lambda xp, t: xp.zeros_like(t),
}


@keeps("JVP-10")
def test_the_tangent_of_a_view_is_a_view(subject, data):
    """Where forward returns a view, jvp has to return that view of the tangent; a copy raises."""
    view = VIEWS[subject.draw(data, VIEWS, "forward returns")]
    copied = COPIES[subject.draw(data, COPIES, "instead of the view of the tangent, jvp returns")]
    arrays, tangents, position = _drawn_arguments(subject, data, (2, 3))
    xp = subject.implementation.xp

    def tangent_of(t):
        return xp.reshape(t, t.shape) if view is VIEWS["x"] else view(xp, t)

    def tangents_with(jvp):
        forward = lambda ctx, *xs: view(xp, xs[position])  # noqa: E731
        apply = subject.custom(forward=forward, jvp=lambda ctx, *ts: jvp(ts[position]))
        return subject.implementation.jvp(apply, arrays, tangents)[1]

    got = subject.assert_accepted(lambda: tangents_with(tangent_of), "a tangent that is the same view")
    subject.assert_all_same("tangents", got=got, expected=[tangent_of(tangents[position])])
    action = lambda: tangents_with(lambda t: copied(xp, tangent_of(t)))  # noqa: E731
    what = "a tangent that is not a view"
    subject.assert_raises(subject.implementation.refusals, action, what, naming=["jvp", ("view", "share", "input")])


@keeps("JVP-11")
def test_the_tangent_of_what_changes_in_place_does_so_too(subject, data):
    """Where forward changes its input in place, jvp has to do so with the tangent; a copy raises."""
    copied = COPIES[subject.draw(data, COPIES, "instead of the tangent itself, jvp returns")]
    factor = subject.draw(data, FACTORS, "factor")
    arrays, tangents, position = _drawn_arguments(subject, data, (3,))

    def forward(ctx, *xs):
        changed = xs[position]
        changed *= factor
        ctx.mark_dirty(changed)
        return changed

    def in_place(t):
        t *= factor
        return t

    def tangents_with(jvp):
        apply = subject.custom(forward=forward, jvp=lambda ctx, *ts: jvp(ts[position]))
        fresh = [[subject.implementation.xp.copy(x) for x in xs] for xs in (arrays, tangents)]
        return subject.implementation.jvp(apply, *fresh)[1]

    got = subject.assert_accepted(lambda: tangents_with(in_place), "a tangent that is changed in place")
    subject.assert_all_same("tangents", got=got, expected=[factor * tangents[position]])
    action = lambda: tangents_with(lambda t: copied(subject.implementation.xp, in_place(t)))  # noqa: E731
    what = "a tangent that is not changed in place"
    facts = ["jvp", ("inplace", "in place", "in-place", "share")]
    subject.assert_raises(subject.implementation.refusals, action, what, naming=facts)


def _drawn_arguments(subject, data, shape):
    """One to three tensors with their tangents, and the position of one of them."""
    dtype = subject.draw(data, subject.dtypes, "dtype")
    position = subject.draw(data, st.integers(0, 2), "argument that is returned")
    count = position + 1 + subject.draw(data, st.integers(0, 2 - position), "arguments after it")
    values = np.random.default_rng(count).choice([-3.0, -2.0, -1.0, 1.0, 2.0, 3.0], size=(2, count, *shape))
    arrays, tangents = ([subject.tensor(a, dtype) for a in each] for each in values)
    return arrays, tangents, position


def _with_output(subject, data, *kinds):
    """A Function that has at least one output of these kinds."""
    limits = subject.possible({"max_arguments": 4, "max_outputs": 4, "separate": None})
    every = polynomials(dtypes=subject.dtypes, **limits)
    return subject.draw(data, every.filter(lambda p: set(kinds) & set(p.outputs)), "function")


def _replacing(polynomial, position, change):
    """The right jvp, except for the tangent of one output."""
    rule = right_rule(polynomial)

    def jvp(ctx, *given):
        found = list(rule(ctx, *given))
        found[position] = change(found[position])
        return tuple(found)

    return jvp
