"""Calls of custom functions, which rules they need, and what they capture."""

import mlx.core as mx
from hypothesis import strategies as st

from autograd_conformance.harness.testing.marks import keeps
from autograd_conformance.suites.dialects.mlx._trees import Values, arguments, leaves, mapped, shaped, trees

RULES = {
    "vjp": lambda primals, cotangents, outputs: primals,
    "jvp": lambda primals, tangents: tangents,
    "vmap": lambda inputs, axes: (inputs, axes),
}
SOME_RULES = st.sets(st.sampled_from(sorted(RULES)))


def _defined(f, rules):
    custom = mx.custom_function(f)
    for name in sorted(rules):
        getattr(custom, name)(RULES[name])
    return custom


def _doubled(*args, **kwargs):
    return {"by position": mapped(lambda x: 2 * x, args), "by keyword": mapped(lambda x: 3 * x, kwargs)}


@keeps("MLX-CALL-01")
def test_a_call_gives_what_the_wrapped_function_gives(subject, data):
    """A call gives the wrapped function's result for any trees of arguments, whatever rules are defined."""
    values = Values(subject, data)
    positional = subject.draw(data, arguments(), "arguments")
    keywords = subject.draw(data, st.dictionaries(st.sampled_from("xy"), trees()), "keyword arguments")
    rules = subject.draw(data, SOME_RULES, "rules")
    args, kwargs = values.grown(positional, 0), values.grown(keywords, 1)
    got, expected = _defined(_doubled, rules)(*args, **kwargs), _doubled(*args, **kwargs)
    subject.assert_equal("structure of the result", got=shaped(got), expected=shaped(expected))
    subject.assert_all_same("arrays of the result", got=leaves(got), expected=leaves(expected))


@keeps("MLX-CALL-01", variant="constants")
def test_a_call_gives_what_is_no_array_too(subject, data):
    """A function with rules may return a non-array next to an array."""
    values = Values(subject, data)
    alongside = subject.draw(data, st.one_of(st.integers(), st.none(), st.text(max_size=3)), "second output")
    rules = subject.draw(data, st.sets(st.sampled_from(sorted(RULES)), min_size=1), "rules")
    x = values.tensor(values.array(0))
    got = subject.assert_accepted(
        lambda: _defined(lambda x: (2 * x, alongside), rules)(x), "an output that is not an array"
    )
    subject.assert_equal("that output", got=got[1], expected=alongside)


@keeps("MLX-CALL-02")
def test_without_a_rule_the_wrapped_function_is_transformed(subject, data):
    """A transformation without a rule of its own uses the wrapped function, even if other rules exist."""
    values = Values(subject, data, shapes=((3,), (2, 3)))
    weight = subject.draw(data, (2, -3), "weight")
    transformed = subject.draw(data, sorted(RULES), "transformation")
    rules = subject.draw(data, SOME_RULES.map(lambda rules: rules - {transformed}), "rules")
    f = _defined(lambda x: x * weight, rules)
    x, v = (values.tensor(values.array(salt)) for salt in range(2))
    runs = {
        "vjp": lambda: mx.vjp(f, [x], [v])[1][0],
        "jvp": lambda: mx.jvp(f, [x], [v])[1][0],
        "vmap": lambda: mx.vmap(f)(v),
    }
    got = runs[transformed]()
    subject.assert_same(f"result of mx.{transformed}", got=got, expected=weight * values.array(1))


def _captured_gradient(subject, data, rules):
    """The gradient for what a custom function captures, and the number of times that a rule ran."""
    values = Values(subject, data)
    ran = []

    def rule(primal, cotangent, output):
        ran.append(1)
        return cotangent

    def outer(x, y):
        f = _defined(lambda x: x * y, rules)
        if "vjp" in rules:
            f.vjp(rule)
        return f(x).sum()

    x, y = (values.tensor(values.array(salt)) for salt in range(2))
    return mx.grad(outer, argnums=1)(x, y), 0 * values.array(0), len(ran)


@keeps("MLX-CALL-03")
def test_what_is_captured_is_constant(subject, data):
    """With rules, a captured array has a zero gradient, and the vjp rule does not run for it."""
    rules = subject.draw(data, st.sets(st.sampled_from(sorted(RULES)), min_size=1), "rules")
    got, zeros, ran = _captured_gradient(subject, data, rules)
    subject.assert_same("gradient of what is captured", got=got, expected=zeros)
    subject.assert_equal("number of times that the vjp rule ran for it", got=ran, expected=0)


@keeps("MLX-CALL-03", variant="without-rules")
def test_what_a_function_without_rules_captures_is_constant(subject, data):
    """Without any rule, a captured array has a zero gradient too."""
    got, zeros, _ = _captured_gradient(subject, data, ())
    subject.assert_same("gradient of what is captured", got=got, expected=zeros)
