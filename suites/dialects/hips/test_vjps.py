"""How VJPs are defined, and when VJP makers and VJPs run."""

import itertools
import weakref

import autograd
import numpy as np
from autograd import core, extend
from hypothesis import assume
from hypothesis import strategies as st

from autograd_conformance.harness.checking.marks import keeps
from autograd_conformance.suites.contract._garbage import without_collector
from autograd_conformance.suites.dialects.hips._primitives import (
    arguments,
    cotangent,
    drawn_polynomial,
    expected_gradients,
    output_function,
    pulled,
    slope,
    some_of,
    vjp,
)

SHAPES = ((), (1,), (3,), (2, 3))


@keeps("HIPS-VJP-01")
def test_a_maker_gets_output_and_arguments(subject, data):
    """The maker gets the output and all arguments, and its VJP gets the output's gradient."""
    polynomial = drawn_polynomial(subject, data)
    argnums = some_of(subject, data, polynomial)
    made, arrived = [], []

    def watching(i):
        def maker(ans, *xs):
            made.append((ans, *xs))
            rule = vjp(polynomial, i)(ans, *xs)
            return lambda g: (arrived.append(g), rule(g))[1]

        return maker

    f = extend.primitive(output_function(polynomial))
    extend.defvjp(f, *map(watching, polynomial.tensors))
    g = cotangent(subject, polynomial)
    got = pulled(f, arguments(subject, polynomial), argnums, g)
    for given in made:
        subject.assert_same("output that a maker gets", got=given[0], expected=polynomial.forward()[0])
        subject.assert_all_same("arguments that a maker gets", got=given[1:], expected=polynomial.values)
    subject.assert_all_same("gradients that VJPs get", got=arrived, expected=[g] * len(argnums))
    subject.assert_all_same("gradients", got=got, expected=expected_gradients(polynomial, argnums))


@keeps("HIPS-VJP-02")
def test_makers_run_in_the_forward_pass_once(subject, data):
    """Makers run once, in the forward pass; VJPs once in each backward pass."""
    polynomial = drawn_polynomial(subject, data)
    argnums = some_of(subject, data, polynomial)
    passes = subject.draw(data, st.integers(0, 3), "passes back")
    events = []

    def watching(i):
        def maker(ans, *xs):
            events.append(("maker", i))
            rule = vjp(polynomial, i)(ans, *xs)
            return lambda g: (events.append(("VJP", i)), rule(g))[1]

        return maker

    f = extend.primitive(output_function(polynomial))
    extend.defvjp(f, *map(watching, polynomial.tensors))
    back, _ = autograd.make_vjp(f, argnums)(*arguments(subject, polynomial))
    events.append("forward is over")
    given = [cotangent(subject, polynomial, salt=n) for n in range(passes)]
    got = [gradient for g in given for gradient in back(g)]
    ordered = sorted(argnums)
    expected = [("maker", i) for i in ordered] + ["forward is over"] + passes * [("VJP", i) for i in ordered]
    subject.assert_equal("what happens", got=events, expected=expected)
    wanted = [each for n in range(passes) for each in expected_gradients(polynomial, argnums, salt=n)]
    subject.assert_all_same("gradients", got=got, expected=wanted)


@keeps("HIPS-VJP-03")
def test_what_no_vjp_closes_over_is_freed(subject, data):
    """After the forward pass only the values that VJPs close over are alive, without the garbage collector."""
    shape = subject.draw(data, ((1,), (3,), (2, 3)), "shape")
    flags = st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=4)
    keeping = subject.draw(data, flags, "VJPs that close over the argument, the output, call by call")
    references = []

    def watched(x):
        y = 2 * x
        references.append((weakref.ref(x), weakref.ref(y)))
        return y

    def chained(x):
        y = x + 1.0
        for argument, output in keeping:
            f = extend.primitive(watched)
            extend.defvjp(f, lambda ans, x, kept=(argument, output): _rule(kept[1] and ans, kept[0] and x))
            y = f(y)
        return autograd.numpy.sum(y)

    with without_collector():
        back, _ = autograd.make_vjp(chained)(subject.tensor(np.ones(shape)))
        alive = [tuple(reference() is not None for reference in pair) for pair in references]
    # An output is the next argument.
    argument_kept, output_kept = zip(*keeping, strict=True)
    between = [a or b for a, b in zip((*argument_kept, False), (False, *output_kept), strict=True)]
    expected = list(itertools.pairwise(between))
    subject.assert_equal("arguments and outputs that are alive after the forward pass", got=alive, expected=expected)
    subject.assert_same("gradient", got=back(np.float64(1.0)), expected=np.full(shape, 2.0 ** len(keeping)))


def _rule(*kept):
    return lambda g: (kept, 2 * g)[1]


@keeps("HIPS-VJP-04")
def test_several_vjps_in_order_and_none_for_zero(subject, data):
    """defvjp takes one VJP per argument in order; None gives a zero gradient of the right dtype."""
    polynomial = drawn_polynomial(subject, data)
    argnums = some_of(subject, data, polynomial)
    zero = subject.draw(data, st.sets(st.sampled_from(polynomial.tensors)), "arguments whose VJP is None")
    f = extend.primitive(output_function(polynomial))
    extend.defvjp(f, *(None if i in zero else vjp(polynomial, i) for i in polynomial.tensors))
    got = pulled(f, arguments(subject, polynomial), argnums, cotangent(subject, polynomial))
    expected = expected_gradients(polynomial, argnums)
    wanted = [np.zeros(polynomial.shape) if i in zero else e for i, e in zip(argnums, expected, strict=True)]
    subject.assert_all_same("gradients", got=got, expected=wanted)
    dtypes = [np.asarray(g).dtype.name for g in got]
    subject.assert_equal("dtypes of the gradients", got=dtypes, expected=[polynomial.dtype] * len(argnums))


@keeps("HIPS-VJP-05")
def test_vjps_at_given_positions(subject, data):
    """With argnums, each VJP belongs to the argument at its given position."""
    polynomial = drawn_polynomial(subject, data)
    positions = some_of(subject, data, polynomial, "argnums of defvjp")
    argnums = subject.draw(data, st.permutations(positions), "differentiated")
    f = extend.primitive(output_function(polynomial))
    extend.defvjp(f, *(vjp(polynomial, i) for i in positions), argnums=positions)
    got = pulled(f, arguments(subject, polynomial), argnums, cotangent(subject, polynomial))
    subject.assert_all_same("gradients", got=got, expected=expected_gradients(polynomial, argnums))


def _undefined(subject, polynomial, argnums, missing):
    """An action that needs the VJPs of these arguments, some of which are missing."""

    def unruled(*xs):
        return output_function(polynomial)(*xs)

    f = extend.primitive(unruled)
    present = [i for i in polynomial.tensors if i not in missing]
    extend.defvjp(f, *(vjp(polynomial, i) for i in present), argnums=present)
    return lambda: pulled(f, arguments(subject, polynomial), argnums, cotangent(subject, polynomial))


@keeps("HIPS-VJP-06")
def test_an_undefined_vjp_raises(subject, data):
    """For up to two arguments, a missing VJP raises NotImplementedError with the primitive's name."""
    polynomial = drawn_polynomial(subject, data)
    argnums = some_of(subject, data, polynomial)[:2]
    missing = subject.draw(data, st.sets(st.sampled_from(argnums), min_size=1), "undefined")
    action = _undefined(subject, polynomial, argnums, missing)
    what = "differentiating with respect to an argument without a VJP"
    subject.assert_raises(NotImplementedError, action, what, naming=["unruled"])


@keeps("HIPS-VJP-06", variant="which")
def test_an_undefined_vjp_raises_and_names_its_position(subject, data):
    """For one argument, the error for a missing VJP names the position."""
    polynomial = drawn_polynomial(subject, data)
    assume(len(polynomial.tensors) > 1)
    position = subject.draw(data, polynomial.tensors[1:], "undefined, and differentiated")
    action = _undefined(subject, polynomial, [position], {position})
    what = "differentiating with respect to one argument, without a VJP"
    subject.assert_raises(NotImplementedError, action, what, naming=[position])


@keeps("HIPS-VJP-06", variant="several")
def test_an_undefined_vjp_raises_among_several(subject, data):
    """For three arguments or more, a missing VJP raises NotImplementedError with the primitive's name."""
    polynomial = drawn_polynomial(subject, data)
    assume(len(polynomial.tensors) > 2)
    missing = subject.draw(data, st.sets(st.sampled_from(polynomial.tensors), min_size=1), "undefined")
    action = _undefined(subject, polynomial, polynomial.tensors, missing)
    what = "differentiating with respect to three arguments or more, some without a VJP"
    subject.assert_raises(NotImplementedError, action, what, naming=["unruled"])


@keeps("HIPS-VJP-07")
def test_work_is_shared_across_arguments(subject, data):
    """The maker of defvjp_argnums runs once with all positions, and gives all gradients in order."""
    polynomial = drawn_polynomial(subject, data)
    argnums = some_of(subject, data, polynomial)
    seen = []

    def maker(positions, ans, xs, named):
        seen.append((tuple(positions), len(xs), dict(named)))
        return lambda g: tuple(slope(polynomial, i, xs[i]) * g for i in positions)

    f = extend.primitive(output_function(polynomial))
    extend.defvjp_argnums(f, maker)
    back, _ = autograd.make_vjp(f, argnums)(*arguments(subject, polynomial), key=3)
    got = back(cotangent(subject, polynomial))
    expected = [(tuple(sorted(argnums)), len(polynomial.tensors), {"key": 3})]
    subject.assert_equal("positions, arguments and keywords of each call of the maker", got=seen, expected=expected)
    subject.assert_all_same("gradients", got=got, expected=expected_gradients(polynomial, argnums))


@keeps("HIPS-VJP-08")
def test_a_maker_for_any_argument(subject, data):
    """The maker of defvjp_argnum runs once per argument, with position, output, arguments and keywords."""
    polynomial = drawn_polynomial(subject, data)
    argnums = some_of(subject, data, polynomial)
    seen = []

    def maker(position, ans, xs, named):
        seen.append((position, len(xs), dict(named)))
        subject.assert_same("output that the maker gets", got=ans, expected=polynomial.forward()[0])
        return lambda g: slope(polynomial, position, xs[position]) * g

    f = extend.primitive(output_function(polynomial))
    extend.defvjp_argnum(f, maker)
    back, _ = autograd.make_vjp(f, argnums)(*arguments(subject, polynomial), key=3)
    got = back(cotangent(subject, polynomial))
    expected = [(i, len(polynomial.tensors), {"key": 3}) for i in sorted(argnums)]
    subject.assert_equal("position, arguments and keywords of each call of the maker", got=seen, expected=expected)
    subject.assert_all_same("gradients", got=got, expected=expected_gradients(polynomial, argnums))


@keeps("HIPS-VJP-09")
def test_makers_of_what_is_not_differentiated_do_not_run(subject, data):
    """Only the makers of differentiated arguments run."""
    polynomial = drawn_polynomial(subject, data, arguments=("tracked", "number", "None"))
    argnums = some_of(subject, data, polynomial)
    ran = []

    def watching(i):
        return lambda ans, *xs: (ran.append(i), vjp(polynomial, i)(ans, *xs))[1]

    f = extend.primitive(output_function(polynomial))
    extend.defvjp(f, *map(watching, range(len(polynomial.arguments))))
    got = pulled(f, arguments(subject, polynomial), argnums, cotangent(subject, polynomial))
    subject.assert_equal("makers that ran, sorted", got=sorted(ran), expected=sorted(argnums))
    subject.assert_all_same("gradients", got=got, expected=expected_gradients(polynomial, argnums))


@keeps("HIPS-VJP-10")
def test_gradients_of_all_uses_are_summed(subject, data):
    """A value that is used several times gets the sum, and no gradient array is changed in place."""
    shape, dtype = subject.draw(
        data, st.tuples(st.sampled_from(SHAPES), st.sampled_from(subject.dtypes)), "shape, dtype"
    )
    uses = st.lists(st.integers(0, 2), min_size=1, max_size=4)
    calls = subject.draw(data, st.lists(uses, min_size=1, max_size=3), "which variable each call takes where")
    # The same array is the gradient of every argument.
    f = extend.primitive(lambda *xs: sum(xs, np.zeros(shape, dtype)))
    extend.defvjp_argnums(f, lambda argnums, *_: lambda g: (g,) * len(argnums))
    g, xs = (subject.tensor(np.ones(shape), dtype), [subject.tensor(np.ones(shape), dtype) for _ in range(3)])
    back, _ = autograd.make_vjp(lambda *xs: f(*(f(*(xs[k] for k in which)) for which in calls)), [0, 1, 2])(*xs)
    counts = [sum(which.count(k) for which in calls) for k in range(3)]
    for _ in range(2):
        subject.assert_all_same("gradients", got=back(g), expected=[np.full(shape, float(n)) for n in counts])
    subject.assert_same("gradient of the output after the passes", got=g, expected=np.ones(shape))


@keeps("HIPS-VJP-11")
def test_derivatives_of_any_order(subject, data):
    """First to fourth derivatives of a primitive whose VJP calls it again are right."""
    power, order = subject.draw(data, st.tuples(st.integers(0, 5), st.integers(1, 4)), "power, order")
    x = subject.tensor(subject.draw(data, (2.0, -1.0, 3.0), "x"))
    f = _powers()
    derivative = lambda x: f(x, power)  # noqa: E731
    for _ in range(order):
        derivative = autograd.grad(derivative)
    factors = np.prod([float(power - k) for k in range(order)])
    expected = np.asarray(factors * float(x) ** (power - order) if order <= power else 0.0)
    subject.assert_same("derivative", got=derivative(x), expected=expected)


def _powers():
    """x ** n as a primitive whose VJP calls it again."""
    f = extend.primitive(lambda x, n: np.asarray(x, np.float64) ** n)
    extend.defvjp(f, lambda ans, x, n: lambda g: g * n * f(x, n - 1) if n else 0.0 * g, None)
    return f


@keeps("HIPS-VJP-12")
def test_a_later_definition_replaces_an_earlier_one(subject, data):
    """Calls use the VJP that was defined last before them."""
    polynomial = drawn_polynomial(subject, data)
    argnums = some_of(subject, data, polynomial)
    factors = subject.draw(data, st.lists(st.sampled_from((2.0, -1.0, 3.0)), min_size=2, max_size=3), "definitions")
    f, g, backs = extend.primitive(output_function(polynomial)), cotangent(subject, polynomial), []
    for factor in factors:
        extend.defvjp(f, *(vjp(polynomial, i, factor) for i in polynomial.tensors))
        backs.append(autograd.make_vjp(f, argnums)(*arguments(subject, polynomial))[0])
    for factor, back in zip(factors, backs, strict=True):
        subject.assert_all_same(
            "gradients", got=back(g), expected=expected_gradients(polynomial, argnums, factor=factor)
        )


@keeps("HIPS-VJP-13")
def test_the_old_methods_warn_and_work(subject, data):
    """The old methods define right gradients and warn with their name and the update guide."""
    polynomial = drawn_polynomial(subject, data)
    argnums = some_of(subject, data, polynomial)
    name = subject.draw(data, ("defvjp", "defgrad", "defvjp_is_zero"), "method")
    f = core.primitive_with_deprecation_warnings(output_function(polynomial))
    define = {
        "defvjp": lambda i: f.defvjp(lambda g, ans, vs, gvs, *xs: slope(polynomial, i, xs[i]) * g, argnum=i),
        "defgrad": lambda i: f.defgrad(vjp(polynomial, i), argnum=i),
        "defvjp_is_zero": lambda i: f.defvjp_is_zero([i]),
    }[name]
    for action in [lambda i=i: define(i) for i in polynomial.tensors]:
        subject.assert_warns(UserWarning, action, f"{name} of a primitive", naming=[name, "deprecated", "updateguide"])
    got = pulled(f, arguments(subject, polynomial), argnums, cotangent(subject, polynomial))
    subject.assert_all_same(
        "gradients", got=got, expected=expected_gradients(polynomial, argnums, factor=float(name != "defvjp_is_zero"))
    )
