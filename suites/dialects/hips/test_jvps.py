"""Forward mode: how JVPs are defined, and how they combine with VJPs."""

import autograd
import numpy as np
from autograd import extend, test_util
from hypothesis import strategies as st

from autograd_conformance.harness.checking.marks import keeps
from autograd_conformance.suites.dialects.hips._primitives import (
    arguments,
    drawn_polynomial,
    expected_tangent,
    jvp,
    output_function,
    primitive_with_rules,
    pushed,
    slope,
    some_of,
    tangents,
)


@keeps("HIPS-JVP-01")
def test_the_value_and_the_tangent(subject, data):
    """make_jvp gives value and tangent, and runs only the rules of the arguments that move."""
    polynomial = drawn_polynomial(subject, data)
    moving = some_of(subject, data, polynomial, "arguments that move")
    ran = []

    def watching(i):
        return lambda g, ans, *xs: (ran.append(i), jvp(polynomial, i)(g, ans, *xs))[1]

    f = extend.primitive(output_function(polynomial))
    extend.defjvp(f, *map(watching, polynomial.tensors))
    moves = tangents(subject, polynomial, moving)
    value, got = pushed(f, arguments(subject, polynomial), moving, moves)
    subject.assert_same("value", got=value, expected=polynomial.forward()[0])
    subject.assert_same("tangent", got=got, expected=expected_tangent(polynomial, moving, moves))
    subject.assert_equal("JVPs that ran, sorted", got=sorted(ran), expected=sorted(moving))


@keeps("HIPS-JVP-02")
def test_same_none_and_positions(subject, data):
    """ "same", None, functions and argnums may be mixed in one defjvp."""
    polynomial = drawn_polynomial(subject, data, powers=(1,))
    moving = some_of(subject, data, polynomial, "arguments that move")
    # A function that is linear in one argument at a time: their product.
    kinds = st.sampled_from(("same", None, "rule"))
    rules = {i: subject.draw(data, kinds, f"JVP of argument {i}") for i in polynomial.tensors}
    order = subject.draw(data, st.permutations(polynomial.tensors), "argnums of defjvp")

    def others(i, xs):
        return np.prod([x for n, x in enumerate(xs) if n != i], axis=0)

    def rule(i):
        return (lambda g, ans, *xs: others(i, xs) * g) if rules[i] == "rule" else rules[i]

    f = extend.primitive(lambda *xs: np.asarray(np.prod(xs, axis=0)))
    extend.defjvp(f, *map(rule, order), argnums=order)
    moves = tangents(subject, polynomial, moving)
    value, got = pushed(f, arguments(subject, polynomial), moving, moves)
    pairs = zip(moving, map(np.asarray, moves), strict=True)
    terms = [others(i, polynomial.values) * np.asarray(t, np.float64) for i, t in pairs if rules[i] is not None]
    subject.assert_same("value", got=value, expected=np.asarray(np.prod(polynomial.values, axis=0)))
    expected = np.asarray(sum(terms, np.zeros(polynomial.shape)))
    subject.assert_same("tangent", got=got, expected=expected)


@keeps("HIPS-JVP-03")
def test_linear_functions(subject, data):
    """def_linear gives right tangents for a function that is linear in each argument."""
    polynomial = drawn_polynomial(subject, data, max_arguments=3)
    moving = some_of(subject, data, polynomial, "arguments that move")
    f = extend.primitive(lambda *xs, scale: scale * np.asarray(np.prod(xs, axis=0)))
    extend.def_linear(f)
    scale = subject.draw(data, (1, -2, 3), "keyword argument")
    moves = tangents(subject, polynomial, moving)
    _, got = autograd.make_jvp(f, moving)(*arguments(subject, polynomial), scale=scale)(tuple(moves))

    def moved(i, t):
        return scale * np.prod([t if n == i else x for n, x in enumerate(polynomial.values)], axis=0)

    expected = sum(moved(i, np.asarray(t, np.float64)) for i, t in zip(moving, moves, strict=True))
    subject.assert_same("tangent", got=got, expected=np.asarray(expected))


@keeps("HIPS-JVP-04")
def test_modes_are_composed(subject, data):
    """Up to four derivatives in any mix of forward and reverse mode are right."""
    power = subject.draw(data, st.integers(0, 5), "power")
    modes = subject.draw(data, st.lists(st.sampled_from(("grad", "deriv")), min_size=1, max_size=4), "modes")
    x = subject.tensor(subject.draw(data, (2.0, -1.0, 3.0), "x"))
    f = extend.primitive(lambda x, n: np.asarray(x, np.float64) ** n)
    extend.defvjp(f, lambda ans, x, n: lambda g: g * n * f(x, n - 1) if n else 0.0 * g, None)
    extend.defjvp(f, lambda g, ans, x, n: g * n * f(x, n - 1) if n else 0.0 * g, None)
    derivative = lambda x: f(x, power)  # noqa: E731
    for mode in modes:
        derivative = getattr(autograd, mode)(derivative)
    factors = np.prod([float(power - k) for k in range(len(modes))])
    expected = factors * float(x) ** (power - len(modes)) if len(modes) <= power else 0.0
    subject.assert_same("derivative", got=derivative(x), expected=np.asarray(expected))


@keeps("HIPS-JVP-05")
def test_a_rule_for_any_argument(subject, data):
    """The rule of defjvp_argnum runs once for each argument that moves, with its position and the keywords."""
    polynomial = drawn_polynomial(subject, data)
    moving = some_of(subject, data, polynomial, "arguments that move")
    moves, seen = tangents(subject, polynomial, moving), []

    def rule(position, g, ans, xs, named):
        seen.append((position, len(xs), dict(named)))
        return slope(polynomial, position, xs[position]) * g

    f = extend.primitive(output_function(polynomial))
    extend.defjvp_argnum(f, rule)
    _, got = autograd.make_jvp(f, moving)(*arguments(subject, polynomial), key=3)(tuple(moves))
    expected = [(i, len(polynomial.tensors), {"key": 3}) for i in sorted(moving)]
    subject.assert_equal("position, arguments and keywords of each call of the rule", got=seen, expected=expected)
    subject.assert_same("tangent", got=got, expected=expected_tangent(polynomial, moving, moves))


@keeps("HIPS-JVP-05", variant="together")
def test_a_rule_for_all_arguments(subject, data):
    """The rule of defjvp_argnums runs once, with all positions and tangents that move and the keywords."""
    polynomial = drawn_polynomial(subject, data)
    moving = some_of(subject, data, polynomial, "arguments that move")
    moves, seen = tangents(subject, polynomial, moving), []

    def rule(positions, gs, ans, xs, named):
        seen.append((tuple(positions), len(gs), dict(named)))
        return sum(slope(polynomial, i, xs[i]) * g for i, g in zip(positions, gs, strict=True))

    f = extend.primitive(output_function(polynomial))
    extend.defjvp_argnums(f, rule)
    _, got = autograd.make_jvp(f, moving)(*arguments(subject, polynomial), key=3)(tuple(moves))
    expected = [(tuple(sorted(moving)), len(moving), {"key": 3})]
    subject.assert_equal("positions, tangents and keywords of each call of the rule", got=seen, expected=expected)
    subject.assert_same("tangent", got=got, expected=expected_tangent(polynomial, moving, moves))


@keeps("HIPS-CHECK-01")
def test_gradients_are_checked(subject, data):
    """check_grads accepts right rules and raises for a rule that is wrong by a factor."""
    polynomial = drawn_polynomial(subject, data, shapes=((), (3,), (2, 3)), dtypes=("float64",))
    argnums = some_of(subject, data, polynomial)
    modes = subject.draw(data, (["rev"], ["fwd"], ["fwd", "rev"]), "modes")
    order = subject.draw(data, (1, 2), "order")
    check = lambda f: test_util.check_grads(f, argnums, modes=modes, order=order)  # noqa: E731
    xs = arguments(subject, polynomial)
    subject.assert_accepted(lambda: check(primitive_with_rules(polynomial))(*xs), "check_grads of right rules")
    position = subject.draw(data, argnums, "argument whose rule is wrong")
    wrong = extend.primitive(output_function(polynomial))
    factors = {i: 2.0 if i == position else 1.0 for i in polynomial.tensors}
    extend.defvjp(wrong, *(_scaled(polynomial, i, factors[i]) for i in polynomial.tensors))
    extend.defjvp(wrong, *(jvp(polynomial, i, factors[i]) for i in polynomial.tensors))
    what = "check_grads of a rule that is wrong by a factor of two"
    subject.assert_raises(AssertionError, lambda: check(wrong)(*xs), what)


def _scaled(polynomial, i, factor):
    return lambda ans, *xs: lambda g: factor * (slope(polynomial, i, xs[i]) * g)


@keeps("HIPS-CHECK-01", variant="second")
def test_second_derivatives_are_checked(subject, data):
    """check_grads to second order raises for a wrong second derivative that the first order accepts."""
    polynomial = drawn_polynomial(subject, data, powers=(2,), shapes=((), (3,), (2, 3)), dtypes=("float64",))
    argnums = some_of(subject, data, polynomial)
    wrong = extend.primitive(output_function(polynomial))
    # The first derivative is right, and computed from an array without a history.
    plain = [lambda x, i=i: slope(polynomial, i, autograd.tracer.getval(x)) for i in polynomial.tensors]
    extend.defvjp(wrong, *(lambda ans, *xs, i=i: lambda g: plain[i](xs[i]) * g for i in polynomial.tensors))
    check = lambda order: test_util.check_grads(wrong, argnums, modes=["rev"], order=order)  # noqa: E731
    xs = arguments(subject, polynomial)
    subject.assert_accepted(lambda: check(1)(*xs), "check_grads to first order of right first derivatives")
    what = "check_grads to second order of wrong second derivatives"
    subject.assert_raises(AssertionError, lambda: check(2)(*xs), what)
