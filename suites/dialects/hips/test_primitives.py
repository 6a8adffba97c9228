"""What a primitive's function gets, may do and may return."""

import math
import operator
from contextlib import suppress

import autograd
import numpy as np
from autograd import extend
from autograd.tracer import isbox
from hypothesis import strategies as st

from autograd_conformance.harness.testing.marks import keeps
from autograd_conformance.reference.polynomials import STATICS
from autograd_conformance.suites.dialects.hips._primitives import HipsCase, noted, with_vjps


@keeps("HIPS-PRIM-01")
def test_the_derivative_is_what_the_rule_says(subject, data):
    """The gradients follow a deliberately wrong rule, and the function gets plain arrays."""
    case, boxes = HipsCase(subject, data), []
    factor = subject.draw(data, (2, -1, 3), "factor by which the rule is wrong")

    def watched(*xs):
        boxes.append([isbox(x) for x in xs])
        return case.function(*xs)

    got = case.pulled(case.primitive(vjp=lambda i: case.vjp(i, factor), function=watched))
    case.assert_gradients(got, factor=factor)
    expected = [[False] * len(case.every)]
    subject.assert_equal("whether the function gets boxes, in each call", got=boxes, expected=expected)


@keeps("HIPS-PRIM-01", variant="keywords")
def test_an_array_by_keyword_passes_no_rule_by(subject, data):
    """The rule decides the gradient of an array that is passed by keyword, too, or the call is refused."""
    alone, ran = subject.draw(data, (True, False), "the only traced argument"), []

    def maker(ans, x, w):
        return lambda g: ran.append(w) or g

    f = with_vjps(lambda x, w: x * w, maker, maker)
    one, x = subject.tensor(1.0), subject.tensor(2.0)
    with suppress(TypeError, NotImplementedError):
        autograd.make_vjp(lambda w: f(one if alone else w, w=w))(x)[0](one)
        subject.assert_equal("rules that ran", got=len(ran), expected=1 if alone else 2)


@keeps("HIPS-PRIM-02")
def test_a_primitive_may_compute_in_place_and_with_anything(subject, data):
    """A primitive may use math, loops and in-place NumPy, and still has its rule's gradients."""
    case = HipsCase(subject, data)
    polynomial = case.polynomial

    def in_place(*xs):
        total = np.zeros(case.shape, polynomial.dtype)
        for x, weight in zip(xs, polynomial.weights[0].tolist(), strict=True):
            term = np.array([math.prod([float(each)] * polynomial.power) for each in x.ravel()], polynomial.dtype)
            term *= weight
            np.add(total, term.reshape(case.shape), out=total)
        return total

    back, value = autograd.make_vjp(case.primitive(vjp=case.vjp, function=in_place), case.argnums)(*case.xs)
    subject.assert_same("output", got=value, expected=case.value)
    case.assert_gradients(back(case.cotangent()))


@keeps("HIPS-PRIM-03")
def test_other_arguments_arrive_as_they_are(subject, data):
    """Non-array arguments reach the function and the VJP maker as the same objects, also as keywords."""
    case, seen = HipsCase(subject, data, arguments=("tracked", *STATICS)), []
    named = {name: STATICS[name] for name in subject.draw(data, st.sets(st.sampled_from(tuple(STATICS))), "keywords")}
    others = [i for i, kind in enumerate(case.polynomial.arguments) if kind in STATICS]

    def note(*xs, **given):
        seen.append(([xs[i] for i in others], given))
        return case.function(*xs)

    f = case.primitive(vjp=lambda i: noted(case.vjp(i), lambda ans, *xs, **given: note(*xs, **given)), function=note)
    case.assert_gradients(case.pulled(f, **named))
    subject.assert_equal("calls of the function and of VJP makers", got=len(seen), expected=1 + len(case.argnums))
    passed = [case.polynomial.values[i] for i in others]
    same = [given == named and all(map(operator.is_, values, passed)) for values, given in seen]
    subject.assert_equal("whether each got what was passed", got=same, expected=[True] * len(seen))


@keeps("HIPS-PRIM-04")
def test_an_untraced_call_is_an_ordinary_one(subject, data):
    """An untraced call returns what the function returns, and no rule runs."""
    case, makers = HipsCase(subject, data, ""), []
    result = subject.draw(data, ("array", *STATICS), "what the function returns")
    f = case.primitive(function=lambda *xs: case.function(*xs) if result == "array" else STATICS[result])
    extend.defvjp_argnums(f, lambda *given: makers.append(given))
    got = f(*case.xs)
    subject.assert_equal("number of VJP makers that ran", got=len(makers), expected=0)
    subject.assert_same("result", got=got, expected=case.value if result == "array" else STATICS[result])


@keeps("HIPS-PRIM-05")
def test_what_has_no_box_is_refused(subject, data):
    """A traced primitive that returns a type without a box raises TypeError; an untraced one does not."""
    others = {"None": None, "text": "text", "integer": 3, "flag": True, "set": {1}, "NumPy integer": np.int64(3)}
    kind = subject.draw(data, others, "returned by the primitive")
    within = subject.draw(data, (False, True), "used afterwards")
    f, x = with_vjps(lambda x: others[kind], None), subject.tensor(1.0)
    action = lambda: autograd.make_vjp(lambda y: (f(y), y)[within])(x)  # noqa: E731
    naming = [type(others[kind]).__name__]
    subject.assert_raises(TypeError, action, "a primitive whose output has no box", naming=naming)
    subject.assert_accepted(lambda: f(x), "the call outside a trace")


@keeps("HIPS-PRIM-06")
def test_a_primitive_without_a_rule_cannot_be_differentiated(subject, data):
    """Differentiating a primitive without a rule raises NotImplementedError with its name and the positions."""
    case = HipsCase(subject, data)
    way = subject.draw(data, ("pulled", "pushed"), "operator")

    def unruled(*xs):
        return case.function(*xs)

    f = case.primitive(function=unruled)
    what, naming = "differentiating a primitive without a rule", ["unruled", *case.argnums]
    subject.assert_raises(NotImplementedError, lambda: getattr(case, way)(f), what, naming=naming)
    subject.assert_same("output", got=f(*case.xs), expected=case.value)


@keeps("HIPS-PRIM-07")
def test_containers_are_outputs(subject, data):
    """A primitive may return a container: used entries have gradients, and the VJP gets zeros for the others."""
    case, arrived = HipsCase(subject, data, max_outputs=3), []
    kind = subject.draw(data, ("tuple", "list", "dict"), "container")
    count = len(case.polynomial.outputs)
    used = subject.draw(data, st.lists(st.integers(0, count - 1), min_size=1, max_size=4), "entries used")
    keys = [f"output {o}" for o in range(count)] if kind == "dict" else list(range(count))
    packed = {"tuple": tuple, "list": list, "dict": lambda ys: dict(zip(keys, ys, strict=True))}[kind]

    def maker(i, ans, xs, named):
        def rule(g):
            arrived.append([g[key] for key in keys])
            return sum(case.slope(i, xs[i], o) * g[key] for o, key in enumerate(keys))

        return rule

    f = case.primitive(function=lambda *xs: packed([case.function(*xs, output=o) for o in range(count)]))
    extend.defvjp_argnum(f, maker)
    # An entry that is drawn several times is added several times.
    loss = lambda *xs: sum(autograd.numpy.sum(case.cotangent(o) * f(*xs)[keys[o]]) for o in used)  # noqa: E731
    got = autograd.grad(loss, case.argnums)(*case.xs)
    cotangents = [used.count(o) * g for o, g in enumerate(case.polynomial.cotangents())]
    expected = case.polynomial.vjp(cotangents)
    subject.assert_all_same("gradients", got=got, expected=[np.asarray(expected[i]) for i in case.argnums])
    zeros = [np.any(np.asarray(g) != 0) for each in arrived for o, g in enumerate(each) if o not in used]
    subject.assert_equal("whether the gradients of unused entries differ from zero", got=any(zeros), expected=False)


@keeps("HIPS-BOX-05")
def test_no_derivative_flows_through_what_is_not_traced(subject, data):
    """A notrace_primitive gets plain values, and its result contributes no gradient."""
    case, boxes = HipsCase(subject, data, ""), []
    depth, f = subject.draw(data, st.integers(1, 3), "nested derivatives"), case.with_rules()

    def watched(*xs):
        boxes.extend(map(isbox, xs))
        return case.function(*xs)

    constant = autograd.tracer.notrace_primitive(watched)

    def nested(level, *xs):
        if level == 0:
            boxes.append(isbox(constant(*xs)))
            return f(*xs) + constant(*xs)
        return autograd.make_vjp(lambda *ys: nested(level - 1, *ys), case.every)(*xs)[1]

    case.assert_gradients(case.pulled(lambda *xs: nested(depth - 1, *xs)))
    subject.assert_equal("whether any value is a box", got=any(boxes), expected=False)
