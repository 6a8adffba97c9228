"""How a Function is called: defaults, keywords, wrappers, direct calls of forward, and what is captured."""

from functools import partial
from types import SimpleNamespace

import numpy as np
from hypothesis import strategies as st

from autograd_conformance.harness.testing.marks import keeps
from autograd_conformance.suites.contract._derivatives import arguments

WEIGHTS = st.integers(-3, 3)
PARAMETERS = ("x", "a", "b", "c")
DEFAULTS = {"a": 3, "b": 5, "c": 7}
VALUES = st.fixed_dictionaries(dict.fromkeys(DEFAULTS, WEIGHTS))
X = np.array([1.0, 2.0])
G = np.array([3.0, -1.0])


def _shifted(x, a=3, b=5, c=7):
    return x * 2 + (a + 10 * b + 100 * c)


def _with_defaults(subject, separate):
    """The apply of a Function that computes `_shifted`, with the same parameters."""
    rule = {"backward": lambda ctx, g: (g * 2, None, None, None)}
    combined = {"forward": lambda ctx, x, a=3, b=5, c=7: _shifted(x, a, b, c)}
    apart = {"forward": _shifted, "setup_context": lambda ctx, inputs, output: None}
    return subject.custom(**(apart if separate else combined), **rule)


def _assert_computes(subject, call, expected, slope, what):
    """The call is accepted for X, and its output and gradient are these."""
    outputs, pullback = subject.assert_accepted(lambda: subject.implementation.vjp(call, [subject.tensor(X)]), what)
    subject.assert_same("output", got=outputs[0], expected=expected)
    (got,) = subject.assert_accepted(lambda: pullback([subject.tensor(G)]), f"backward after {what}")
    subject.assert_same("gradient of x", got=got, expected=slope * G)


@keeps("FN-11")
def test_parameters_with_defaults_may_be_left_out(subject, data):
    """Trailing parameters with defaults may be left out; backward still returns None for them."""
    values = subject.draw(data, st.lists(WEIGHTS, max_size=3), "passed after x")
    apply = _with_defaults(subject, subject.draw(data, st.booleans(), "setup_context"))
    _assert_computes(subject, lambda x: apply(x, *values), _shifted(X, *values), 2, "a call with defaults")


@keeps("FN-12")
def test_keywords_fill_positional_parameters(subject, data):
    """Positional parameters can be given by keyword, in any order."""
    apply = _with_defaults(subject, subject.draw(data, st.booleans(), "setup_context"))
    positional = subject.draw(data, st.integers(0, 3), "arguments given by position")
    count = subject.draw(data, st.integers(positional + 1, 4), "arguments given in all")
    named = subject.draw(data, st.permutations(PARAMETERS[positional:count]), "keywords, in order")
    values = subject.draw(data, VALUES, "values")

    def call(f, x):
        given = {"x": x, **values}
        return f(*(given[name] for name in PARAMETERS[:positional]), **{name: given[name] for name in named})

    _assert_computes(subject, partial(call, apply), call(_shifted, X), 2, "a call with keywords")


@keeps("FN-12", variant="defaults")
def test_keywords_may_skip_defaults_with_setup_context(subject, data):
    """With setup_context, keywords may skip parameters that have defaults."""
    named = subject.draw(data, st.dictionaries(st.sampled_from("abc"), WEIGHTS), "keywords")
    apply = _with_defaults(subject, separate=True)
    _assert_computes(subject, lambda x: apply(x, **named), _shifted(X, **named), 2, "a call with keywords")


@keeps("FN-12", variant="skipped")
def test_keywords_may_skip_defaults_with_ctx(subject, data):
    """With a forward that takes ctx, keywords may skip parameters that have defaults."""
    skipped = subject.draw(data, ("a", "b", "ab"), "parameters left out before the last keyword")
    values = subject.draw(data, VALUES, "values of the others")
    named = {name: value for name, value in values.items() if name not in skipped}
    apply = _with_defaults(subject, separate=False)
    _assert_computes(subject, lambda x: apply(x, **named), _shifted(X, **named), 2, "a keyword after a skipped default")


@keeps("FN-12", variant="keyword-only")
def test_keywords_fill_keyword_only_parameters(subject, data):
    """Keywords reach keyword-only parameters of forward."""
    named = subject.draw(data, st.dictionaries(st.sampled_from("ab"), WEIGHTS, min_size=1), "keywords")

    def shifted(x, *, a=3, b=5):
        return _shifted(x, a, b)

    combined = {"forward": lambda ctx, x, *, a=3, b=5: _shifted(x, a, b)}
    apart = {"forward": shifted, "setup_context": lambda ctx, inputs, output: None}
    methods = apart if subject.draw(data, st.booleans(), "setup_context") else combined
    apply = subject.custom(**methods, backward=lambda ctx, g: g * 2)
    _assert_computes(subject, lambda x: apply(x, **named), shifted(X, **named), 2, "a keyword-only argument")


@keeps("FN-12", variant="kwargs")
def test_keywords_fill_kwargs(subject, data):
    """Keywords reach **kwargs of forward."""
    named = subject.draw(data, st.dictionaries(st.sampled_from("abc"), WEIGHTS, min_size=1), "keywords")
    apart = {"forward": lambda x, **kw: _shifted(x, **kw), "setup_context": lambda ctx, inputs, output: None}
    combined = {"forward": lambda ctx, x, **kw: _shifted(x, **kw)}
    methods = apart if subject.draw(data, st.booleans(), "setup_context") else combined
    apply = subject.custom(**methods, backward=lambda ctx, g: g * 2)
    _assert_computes(subject, lambda x: apply(x, **named), _shifted(X, **named), 2, "an argument for **kwargs")


@keeps("FN-13")
def test_keywords_that_forward_does_not_have_are_refused(subject, data):
    """A keyword that forward does not have raises TypeError, which names it."""
    names = ("d", "shift", "ctx", "self", "grad")
    _assert_keyword_refused(subject, data, lambda _: names, "a call with a keyword that forward does not have")


@keeps("FN-13", variant="twice")
def test_an_argument_is_given_once(subject, data):
    """An argument given by position and by keyword raises TypeError, which names it."""
    what = "a call with an argument by position and by keyword"
    _assert_keyword_refused(subject, data, lambda values: PARAMETERS[: 1 + len(values)], what)


def _assert_keyword_refused(subject, data, names, what):
    """A call with one of ``names(values)`` as a keyword, after x and these values, raises; one without is accepted."""
    apply = _with_defaults(subject, subject.draw(data, st.booleans(), "setup_context"))
    values = subject.draw(data, st.lists(WEIGHTS, max_size=3), "passed after x")
    name = subject.draw(data, names(values), "keyword")
    x = subject.tensor(X)
    subject.assert_accepted(lambda: apply(x, *values), "a call without keywords")
    subject.assert_raises(TypeError, lambda: apply(x, *values, **{name: 1}), what, naming=[name])


@keeps("FN-14")
def test_aliases_and_wrappers_do_what_apply_does(subject, data):
    """An alias, a partial and wrappers of apply give apply's results and gradients."""
    separate = subject.draw(data, st.booleans(), "setup_context")
    apply = subject.custom(forward=_shifted, backward=lambda ctx, g: (g * 2, None, None, None), separate=separate)
    alias = apply

    def wrapper(x, a=3, *, b=5, c=7):
        return apply(x, a, b, c)

    ways = {
        "alias": lambda x, v: alias(x, v["a"], v["b"], v["c"]),
        "wrapper": lambda x, v: wrapper(x, **v),
        "wrapper's defaults": lambda x, v: wrapper(x, c=v["c"]),
        "partial": lambda x, v: partial(alias, x, v["a"])(v["b"], v["c"]),
    }
    way_and_values = st.tuples(st.sampled_from(sorted(ways)), VALUES)
    calls = subject.draw(data, st.lists(way_and_values, min_size=1, max_size=4), "calls")

    def f(x):
        return tuple(ways[way](x, values) for way, values in calls)

    outputs, pullback = subject.implementation.vjp(f, [subject.tensor(X)])
    passed = [{"c": v["c"]} if way == "wrapper's defaults" else v for way, v in calls]
    subject.assert_all_same("outputs", got=outputs, expected=[_shifted(X, **values) for values in passed])
    (got,) = pullback(subject.tensors([G] * len(calls)))
    subject.assert_same("gradient of x", got=got, expected=2 * len(calls) * G)


@keeps("FN-22")
def test_a_direct_call_of_forward_is_an_ordinary_function(subject, data):
    """A direct call of forward is differentiated operation by operation; the custom backward does not run."""
    polynomial = subject.polynomial(data, separate=None, outputs=("float", "integers", "static"))
    body = subject.body(polynomial)
    called = []
    cls = subject.define(body, backward=lambda ctx, *cotangents: called.append(cotangents))
    ignored = {name: lambda *_: None for name in ("save_for_backward", "mark_non_differentiable")}
    ctx = () if polynomial.separate else (SimpleNamespace(**ignored),)
    outputs, pullback = subject.implementation.vjp(
        lambda *tensors: cls.forward(*ctx, *arguments(polynomial, tensors)),
        subject.primals(polynomial),
        track=polynomial.track,
    )
    subject.assert_all_same("outputs", got=outputs, expected=polynomial.forward())
    cotangents = polynomial.cotangents()
    got = pullback(subject.tensors(cotangents, polynomial.dtype))
    expected = polynomial.vjp(cotangents)
    subject.assert_equal("calls of the custom backward", got=called, expected=[])
    subject.assert_all_same("gradients", got=got, expected=[expected[i] for i in polynomial.tensors])


@keeps("FN-23", needs="requires_grad")
def test_captured_tensors_get_no_gradient(subject, data):
    """A tensor captured by closure, default or attribute gets no gradient and does not make the output require grad."""
    separate = subject.draw(data, st.booleans(), "setup_context")
    tracked = subject.draw(data, st.booleans(), "the argument requires grad")
    kind = subject.draw(data, ("closure", "default", "attribute"), "how forward and backward capture w")

    def f(x, w):
        holder = SimpleNamespace(w=w)
        captured = {"closure": lambda: w, "default": lambda w=w: w, "attribute": lambda: holder.w}[kind]
        rule = {"forward": lambda x: x * captured(), "backward": lambda ctx, g: g * captured()}
        return subject.custom(**rule, separate=separate, name="Capturing")(x)

    w = np.array([2.0, -1.0])
    outputs, pullback = subject.implementation.vjp(f, subject.tensors([X, w]), track=[tracked, True])
    flag = subject.implementation.requires_grad(outputs[0])
    subject.assert_equal("requires_grad of the output", got=flag, expected=tracked)
    expected = (G * w if tracked else None, None)
    subject.assert_all_same("gradients of x and w", got=pullback([subject.tensor(G)]), expected=expected)
