"""Forward mode: how JVPs are defined, and how they combine with VJPs."""

import autograd
import numpy as np
from autograd import extend, test_util
from hypothesis import strategies as st

from autograd_conformance.harness.testing.marks import keeps
from autograd_conformance.suites.dialects.hips._primitives import HipsCase

MOVING = "arguments that move"


@keeps("HIPS-JVP-01")
def test_the_value_and_the_tangent(subject, data):
    """make_jvp gives value and tangent, and runs only the rules of the arguments that move."""
    case, ran = HipsCase(subject, data, MOVING), []
    f = case.primitive(jvp=lambda i: lambda g, ans, *xs: (ran.append(i), case.jvp(i)(g, ans, *xs))[1])
    value, got = case.pushed(f)
    subject.assert_same("value", got=value, expected=case.value)
    case.assert_tangent(got)
    subject.assert_equal("JVPs that ran, sorted", got=sorted(ran), expected=sorted(case.argnums))


def _product_of_others(i, xs):
    return np.prod([x for n, x in enumerate(xs) if n != i], axis=0)


@keeps("HIPS-JVP-02")
def test_same_none_and_positions(subject, data):
    """ "same", None, functions and argnums may be mixed in one defjvp."""
    # A function that is linear in one argument at a time: the product.
    case = HipsCase(subject, data, MOVING, powers=(1,))
    kinds = st.sampled_from(("same", None, "rule"))
    rules = {i: subject.draw(data, kinds, f"JVP of argument {i}") for i in case.every}
    order = subject.draw(data, st.permutations(case.every), "argnums of defjvp")

    def rule(i):
        return (lambda g, ans, *xs: _product_of_others(i, xs) * g) if rules[i] == "rule" else rules[i]

    f = case.primitive(function=lambda *xs: np.asarray(np.prod(xs, axis=0)))
    extend.defjvp(f, *map(rule, order), argnums=order)
    value, got = case.pushed(f)
    values = case.polynomial.values
    subject.assert_same("value", got=value, expected=np.asarray(np.prod(values, axis=0)))
    case.assert_tangent(got, lambda i, t: _product_of_others(i, values) * t * (rules[i] is not None))


@keeps("HIPS-JVP-03")
def test_linear_functions(subject, data):
    """def_linear gives right tangents for a function that is linear in each argument."""
    case = HipsCase(subject, data, MOVING, max_arguments=3)
    f = case.primitive(function=lambda *xs, scale: scale * np.asarray(np.prod(xs, axis=0)))
    extend.def_linear(f)
    scale = subject.draw(data, (1, -2, 3), "keyword argument")
    _, got = case.pushed(f, scale=scale)
    case.assert_tangent(got, lambda i, t: scale * _product_of_others(i, case.polynomial.values) * t)


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
    case, seen = HipsCase(subject, data, MOVING), []

    def rule(position, g, ans, xs, named):
        seen.append((position, len(xs), dict(named)))
        return case.slope(position, xs[position]) * g

    f = case.primitive()
    extend.defjvp_argnum(f, rule)
    _, got = case.pushed(f, key=3)
    expected = [(i, len(case.every), {"key": 3}) for i in sorted(case.argnums)]
    subject.assert_equal("position, arguments and keywords of each call of the rule", got=seen, expected=expected)
    case.assert_tangent(got)


@keeps("HIPS-JVP-05", variant="together")
def test_a_rule_for_all_arguments(subject, data):
    """The rule of defjvp_argnums runs once, with all positions and tangents that move and the keywords."""
    case, seen = HipsCase(subject, data, MOVING), []

    def rule(positions, gs, ans, xs, named):
        seen.append((tuple(positions), len(gs), dict(named)))
        return sum(case.slope(i, xs[i]) * g for i, g in zip(positions, gs, strict=True))

    f = case.primitive()
    extend.defjvp_argnums(f, rule)
    _, got = case.pushed(f, key=3)
    expected = [(tuple(sorted(case.argnums)), len(case.argnums), {"key": 3})]
    subject.assert_equal("positions, tangents and keywords of each call of the rule", got=seen, expected=expected)
    case.assert_tangent(got)


CHECKED = {"shapes": ((), (3,), (2, 3)), "dtypes": ("float64",)}


@keeps("HIPS-CHECK-01")
def test_gradients_are_checked(subject, data):
    """check_grads accepts right rules and raises for a rule that is wrong by a factor."""
    case = HipsCase(subject, data, **CHECKED)
    modes = subject.draw(data, (["rev"], ["fwd"], ["fwd", "rev"]), "modes")
    order = subject.draw(data, (1, 2), "order")
    position = subject.draw(data, case.argnums, "argument whose rule is wrong")

    def check(f):
        return test_util.check_grads(f, case.argnums, modes=modes, order=order)(*case.xs)

    def doubled(rule):
        return lambda i: rule(i, 2.0 if i == position else 1.0)

    subject.assert_accepted(lambda: check(case.with_rules()), "check_grads of right rules")
    wrong = case.primitive(vjp=doubled(case.vjp), jvp=doubled(case.jvp))
    what = "check_grads of a rule that is wrong by a factor of two"
    subject.assert_raises(AssertionError, lambda: check(wrong), what)


@keeps("HIPS-CHECK-01", variant="second")
def test_second_derivatives_are_checked(subject, data):
    """check_grads to second order raises for a wrong second derivative that the first order accepts."""
    case = HipsCase(subject, data, powers=(2,), **CHECKED)
    # The first derivative is right, and computed from an array without a history.
    plain = lambda i, x: case.slope(i, autograd.tracer.getval(x))  # noqa: E731
    wrong = case.primitive(vjp=lambda i: lambda ans, *xs: lambda g: plain(i, xs[i]) * g)
    check = lambda order: test_util.check_grads(wrong, case.argnums, modes=["rev"], order=order)(*case.xs)  # noqa: E731
    subject.assert_accepted(lambda: check(1), "check_grads to first order of right first derivatives")
    what = "check_grads to second order of wrong second derivatives"
    subject.assert_raises(AssertionError, lambda: check(2), what)
