"""How VJPs are defined, and when VJP makers and VJPs run."""

import itertools
import weakref

import autograd
import numpy as np
from autograd import core, extend
from hypothesis import assume
from hypothesis import strategies as st

from autograd_conformance.harness.testing.marks import keeps
from autograd_conformance.suites.contract._garbage import without_collector
from autograd_conformance.suites.dialects.hips._primitives import HipsCase, noted, with_vjps

SHAPES = ((), (1,), (3,), (2, 3))


@keeps("HIPS-VJP-01")
def test_a_maker_gets_output_and_arguments(subject, data):
    """The maker gets the output and all arguments, and its VJP gets the output's gradient."""
    case, made, arrived = HipsCase(subject, data), [], []
    f = case.primitive(vjp=lambda i: noted(case.vjp(i), lambda *given: made.append(given), arrived.append))
    got = case.pulled(f)
    for output, *given in made:
        subject.assert_same("output that a maker gets", got=output, expected=case.value)
        subject.assert_all_same("arguments that a maker gets", got=given, expected=case.polynomial.values)
    expected = [case.cotangent()] * len(case.argnums)
    subject.assert_all_same("gradients that VJPs get", got=arrived, expected=expected)
    case.assert_gradients(got)


@keeps("HIPS-VJP-02")
def test_makers_run_in_the_forward_pass_once(subject, data):
    """Makers run once, in the forward pass; VJPs once in each backward pass."""
    case, events = HipsCase(subject, data), []
    passes = subject.draw(data, st.integers(0, 3), "passes back")

    def watching(i):
        return noted(case.vjp(i), lambda *_: events.append(("maker", i)), lambda _: events.append(("VJP", i)))

    back, _ = autograd.make_vjp(case.primitive(vjp=watching), case.argnums)(*case.xs)
    events.append("forward is over")
    for n in range(passes):
        case.assert_gradients(back(case.cotangent(salt=n)), salt=n)
    ordered = sorted(case.argnums)
    expected = [("maker", i) for i in ordered] + ["forward is over"] + passes * [("VJP", i) for i in ordered]
    subject.assert_equal("what happens", got=events, expected=expected)


@keeps("HIPS-VJP-03")
def test_what_no_vjp_closes_over_is_freed(subject, data):
    """After the forward pass only the values that VJPs close over are alive, without the garbage collector."""
    shape, references = subject.draw(data, ((1,), (3,), (2, 3)), "shape"), []
    flags = st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=4)
    keeping = subject.draw(data, flags, "VJPs that close over the argument, the output, call by call")

    def watched(x):
        y = 2 * x
        references.append((weakref.ref(x), weakref.ref(y)))
        return y

    def chained(x):
        y = x + 1.0
        for argument, output in keeping:
            y = with_vjps(watched, lambda ans, x, kept=(argument, output): _rule(kept[1] and ans, kept[0] and x))(y)
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
    case = HipsCase(subject, data)
    zero = subject.draw(data, st.sets(st.sampled_from(case.every)), "arguments whose VJP is None")
    got = case.pulled(case.primitive(vjp=lambda i: None if i in zero else case.vjp(i)))
    pairs = zip(case.argnums, case.expected(), strict=True)
    expected = [np.zeros(case.shape) if i in zero else e for i, e in pairs]
    subject.assert_all_same("gradients", got=got, expected=expected)
    dtypes = [np.asarray(g).dtype.name for g in got]
    subject.assert_equal("dtypes of the gradients", got=dtypes, expected=[case.polynomial.dtype] * len(case.argnums))


@keeps("HIPS-VJP-05")
def test_vjps_at_given_positions(subject, data):
    """With argnums, each VJP belongs to the argument at its given position."""
    case = HipsCase(subject, data, "argnums of defvjp")
    f = case.primitive()
    extend.defvjp(f, *map(case.vjp, case.argnums), argnums=tuple(case.argnums))
    case.argnums = subject.draw(data, st.permutations(case.argnums), "differentiated")
    case.assert_gradients(case.pulled(f))


def _check_undefined(subject, case, missing, what, naming):
    """Check that differentiating raises where the VJPs of some arguments are missing."""

    def unruled(*xs):
        return case.function(*xs)

    f = case.primitive(function=unruled)
    present = [i for i in case.every if i not in missing]
    extend.defvjp(f, *map(case.vjp, present), argnums=present)
    subject.assert_raises(NotImplementedError, lambda: case.pulled(f), what, naming=naming)


@keeps("HIPS-VJP-06")
def test_an_undefined_vjp_raises(subject, data):
    """For up to two arguments, a missing VJP raises NotImplementedError with the primitive's name."""
    case = HipsCase(subject, data)
    case.argnums = case.argnums[:2]
    missing = subject.draw(data, st.sets(st.sampled_from(case.argnums), min_size=1), "undefined")
    what = "differentiating with respect to an argument without a VJP"
    _check_undefined(subject, case, missing, what, ["unruled"])


@keeps("HIPS-VJP-06", variant="which")
def test_an_undefined_vjp_raises_and_names_its_position(subject, data):
    """For one argument, the error for a missing VJP names the position."""
    case = HipsCase(subject, data, "")
    assume(len(case.every) > 1)
    case.argnums = [subject.draw(data, case.every[1:], "undefined, and differentiated")]
    what = "differentiating with respect to one argument, without a VJP"
    _check_undefined(subject, case, case.argnums, what, case.argnums)


@keeps("HIPS-VJP-06", variant="several")
def test_an_undefined_vjp_raises_among_several(subject, data):
    """For three arguments or more, a missing VJP raises NotImplementedError with the primitive's name."""
    case = HipsCase(subject, data, "")
    assume(len(case.every) > 2)
    missing = subject.draw(data, st.sets(st.sampled_from(case.every), min_size=1), "undefined")
    what = "differentiating with respect to three arguments or more, some without a VJP"
    _check_undefined(subject, case, missing, what, ["unruled"])


@keeps("HIPS-VJP-07")
def test_work_is_shared_across_arguments(subject, data):
    """The maker of defvjp_argnums runs once with all positions, and gives all gradients in order."""
    case, seen = HipsCase(subject, data), []

    def maker(positions, ans, xs, named):
        seen.append((tuple(positions), len(xs), dict(named)))
        return lambda g: tuple(case.slope(i, xs[i]) * g for i in positions)

    f = case.primitive()
    extend.defvjp_argnums(f, maker)
    got = case.pulled(f, key=3)
    expected = [(tuple(sorted(case.argnums)), len(case.every), {"key": 3})]
    subject.assert_equal("positions, arguments and keywords of each call of the maker", got=seen, expected=expected)
    case.assert_gradients(got)


@keeps("HIPS-VJP-08")
def test_a_maker_for_any_argument(subject, data):
    """The maker of defvjp_argnum runs once per argument, with position, output, arguments and keywords."""
    case, seen = HipsCase(subject, data), []

    def maker(position, ans, xs, named):
        seen.append((position, len(xs), dict(named)))
        subject.assert_same("output that the maker gets", got=ans, expected=case.value)
        return lambda g: case.slope(position, xs[position]) * g

    f = case.primitive()
    extend.defvjp_argnum(f, maker)
    got = case.pulled(f, key=3)
    expected = [(i, len(case.every), {"key": 3}) for i in sorted(case.argnums)]
    subject.assert_equal("position, arguments and keywords of each call of the maker", got=seen, expected=expected)
    case.assert_gradients(got)


@keeps("HIPS-VJP-09")
def test_makers_of_what_is_not_differentiated_do_not_run(subject, data):
    """Only the makers of differentiated arguments run."""
    case, ran = HipsCase(subject, data, arguments=("tracked", "number", "None")), []
    got = case.pulled(case.primitive(vjp=lambda i: noted(case.vjp(i), lambda *_: ran.append(i))))
    subject.assert_equal("makers that ran, sorted", got=sorted(ran), expected=sorted(case.argnums))
    case.assert_gradients(got)


@keeps("HIPS-VJP-10")
def test_gradients_of_all_uses_are_summed(subject, data):
    """A value that is used several times gets the sum, and no gradient array is changed in place."""
    shape, dtype = subject.draw(data, SHAPES, "shape"), subject.draw(data, subject.dtypes, "dtype")
    uses = st.lists(st.integers(0, 2), min_size=1, max_size=4)
    calls = subject.draw(data, st.lists(uses, min_size=1, max_size=3), "which variable each call takes where")
    # The same array is the gradient of every argument.
    f = extend.primitive(lambda *xs: sum(xs, np.zeros(shape, dtype)))
    extend.defvjp_argnums(f, lambda argnums, *_: lambda g: (g,) * len(argnums))
    g, *xs = (subject.tensor(np.ones(shape), dtype) for _ in range(4))
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
    case, backs = HipsCase(subject, data), []
    f = case.primitive()
    factors = subject.draw(data, st.lists(st.sampled_from((2.0, -1.0, 3.0)), min_size=2, max_size=3), "definitions")
    for factor in factors:
        extend.defvjp(f, *(case.vjp(i, factor) for i in case.every))
        backs.append(autograd.make_vjp(f, case.argnums)(*case.xs)[0])
    for factor, back in zip(factors, backs, strict=True):
        case.assert_gradients(back(case.cotangent()), factor=factor)


@keeps("HIPS-VJP-13")
def test_the_old_methods_warn_and_work(subject, data):
    """The old methods define right gradients and warn with their name and the update guide."""
    case = HipsCase(subject, data)
    name = subject.draw(data, ("defvjp", "defgrad", "defvjp_is_zero"), "method")
    f = core.primitive_with_deprecation_warnings(case.function)
    define = {
        "defvjp": lambda i: f.defvjp(lambda g, ans, vs, gvs, *xs: case.slope(i, xs[i]) * g, argnum=i),
        "defgrad": lambda i: f.defgrad(case.vjp(i), argnum=i),
        "defvjp_is_zero": lambda i: f.defvjp_is_zero([i]),
    }[name]
    naming = [name, "deprecated", "updateguide"]
    for action in [lambda i=i: define(i) for i in case.every]:
        subject.assert_warns(UserWarning, action, f"{name} of a primitive", naming=naming)
    case.assert_gradients(case.pulled(f), factor=float(name != "defvjp_is_zero"))
