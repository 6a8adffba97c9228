"""What a primitive's function gets, may do and may return."""

import math
import operator
from contextlib import suppress

import autograd
import numpy as np
from autograd import extend
from autograd.tracer import isbox
from hypothesis import strategies as st

from autograd_conformance.harness.checking.marks import keeps
from autograd_conformance.reference.polynomials import STATICS
from autograd_conformance.suites.dialects.hips._primitives import (
    arguments,
    cotangent,
    drawn_polynomial,
    expected_gradients,
    output_function,
    primitive_with_rules,
    pulled,
    slope,
    some_of,
    vjp,
)

FACTORS = (2, -1, 3)


@keeps("HIPS-PRIM-01")
def test_the_derivative_is_what_the_rule_says(subject, data):
    """The gradients follow a deliberately wrong rule, and the function gets plain arrays."""
    polynomial = drawn_polynomial(subject, data)
    argnums = some_of(subject, data, polynomial)
    factor = subject.draw(data, FACTORS, "factor by which the rule is wrong")
    boxes = []

    def watched(*xs):
        boxes.append([isbox(x) for x in xs])
        return output_function(polynomial)(*xs)

    f = extend.primitive(watched)
    extend.defvjp(f, *(vjp(polynomial, i, factor) for i in polynomial.tensors))
    got = pulled(f, arguments(subject, polynomial), argnums, cotangent(subject, polynomial))
    subject.assert_all_same("gradients", got=got, expected=expected_gradients(polynomial, argnums, factor=factor))
    wanted = [[False] * len(polynomial.tensors)]
    subject.assert_equal("whether the function gets boxes, in each call", got=boxes, expected=wanted)


@keeps("HIPS-PRIM-01", variant="keywords")
def test_an_array_by_keyword_passes_no_rule_by(subject, data):
    """The rule decides the gradient of an array that is passed by keyword, too, or the call is refused."""
    alone = subject.draw(data, (True, False), "the only traced argument")
    ran = []

    def maker(ans, x, w):
        return lambda g: ran.append(w) or g

    f = extend.primitive(lambda x, w: x * w)
    extend.defvjp(f, maker, maker)
    one, x = subject.tensor(1.0), subject.tensor(2.0)
    with suppress(TypeError, NotImplementedError):
        autograd.make_vjp(lambda w: f(one if alone else w, w=w))(x)[0](one)
        subject.assert_equal("rules that ran", got=len(ran), expected=1 if alone else 2)


@keeps("HIPS-PRIM-02")
def test_a_primitive_may_compute_in_place_and_with_anything(subject, data):
    """A primitive may use math, loops and in-place NumPy, and still has its rule's gradients."""
    polynomial = drawn_polynomial(subject, data)
    argnums = some_of(subject, data, polynomial)

    def in_place(*xs):
        total = np.zeros(polynomial.shape, polynomial.dtype)
        for x, weight in zip(xs, polynomial.weights[0].tolist(), strict=True):
            term = np.array([math.prod([float(each)] * polynomial.power) for each in x.ravel()], polynomial.dtype)
            term *= weight
            np.add(total, term.reshape(polynomial.shape), out=total)
        return total

    f = extend.primitive(in_place)
    extend.defvjp(f, *(vjp(polynomial, i) for i in polynomial.tensors))
    xs, g = arguments(subject, polynomial), cotangent(subject, polynomial)
    subject.assert_same("output", got=autograd.make_vjp(f, argnums)(*xs)[1], expected=polynomial.forward()[0])
    subject.assert_all_same(
        "gradients", got=pulled(f, xs, argnums, g), expected=expected_gradients(polynomial, argnums)
    )


@keeps("HIPS-PRIM-03")
def test_other_arguments_arrive_as_they_are(subject, data):
    """Non-array arguments reach the function and the VJP maker as the same objects, also as keywords."""
    polynomial = drawn_polynomial(subject, data, arguments=("tracked", *STATICS))
    argnums = some_of(subject, data, polynomial)
    named = {name: STATICS[name] for name in subject.draw(data, st.sets(st.sampled_from(tuple(STATICS))), "keywords")}
    others = [i for i, kind in enumerate(polynomial.arguments) if kind in STATICS]
    seen = []

    def watched(*xs, **given):
        seen.append(([xs[i] for i in others], given))
        return output_function(polynomial)(*xs)

    def watching(i):
        def maker(ans, *xs, **given):
            seen.append(([xs[i] for i in others], given))
            return vjp(polynomial, i)(ans, *xs)

        return maker

    f = extend.primitive(watched)
    extend.defvjp(f, *map(watching, range(len(polynomial.arguments))))
    back, _ = autograd.make_vjp(f, argnums)(*arguments(subject, polynomial), **named)
    got, expected = back(cotangent(subject, polynomial)), expected_gradients(polynomial, argnums)
    subject.assert_all_same("gradients", got=got, expected=expected)
    subject.assert_equal("calls of the function and of VJP makers", got=len(seen), expected=1 + len(argnums))
    same = [given == named and all(map(operator.is_, values, [STATICS[polynomial.arguments[i]] for i in others]))
            for values, given in seen]  # fmt: skip
    subject.assert_equal("whether each got what was passed", got=same, expected=[True] * len(seen))


@keeps("HIPS-PRIM-04")
def test_an_untraced_call_is_an_ordinary_one(subject, data):
    """An untraced call returns what the function returns, and no rule runs."""
    polynomial = drawn_polynomial(subject, data)
    result = subject.draw(data, ("array", *STATICS), "what the function returns")
    makers = []
    f = extend.primitive(lambda *xs: output_function(polynomial)(*xs) if result == "array" else STATICS[result])
    extend.defvjp_argnums(f, lambda *given: makers.append(given))
    got = f(*arguments(subject, polynomial))
    subject.assert_equal("number of VJP makers that ran", got=len(makers), expected=0)
    expected = polynomial.forward()[0] if result == "array" else STATICS[result]
    subject.assert_same("result", got=got, expected=expected)


@keeps("HIPS-PRIM-05")
def test_what_has_no_box_is_refused(subject, data):
    """A traced primitive that returns a type without a box raises TypeError; an untraced one does not."""
    others = {"None": None, "text": "text", "integer": 3, "flag": True, "set": {1}, "NumPy integer": np.int64(3)}
    kind = subject.draw(data, others, "returned by the primitive")
    within = subject.draw(data, (False, True), "used afterwards")
    f = extend.primitive(lambda x: others[kind])
    extend.defvjp(f, None)
    x = subject.tensor(1.0)
    action = lambda: autograd.make_vjp(lambda y: (f(y), y)[within])(x)  # noqa: E731
    naming = [type(others[kind]).__name__]
    subject.assert_raises(TypeError, action, "a primitive whose output has no box", naming=naming)
    subject.assert_accepted(lambda: f(x), "the call outside a trace")


@keeps("HIPS-PRIM-06")
def test_a_primitive_without_a_rule_cannot_be_differentiated(subject, data):
    """Differentiating a primitive without a rule raises NotImplementedError with its name and the positions."""
    polynomial = drawn_polynomial(subject, data)
    argnums = some_of(subject, data, polynomial)
    make = subject.draw(data, ("make_vjp", "make_jvp"), "operator")

    def unruled(*xs):
        return output_function(polynomial)(*xs)

    f, xs = extend.primitive(unruled), arguments(subject, polynomial)

    def differentiated():
        made = getattr(autograd, make)(f, argnums)(*xs)
        return made(tuple(xs[i] for i in argnums)) if make == "make_jvp" else made

    what = "differentiating a primitive without a rule"
    subject.assert_raises(NotImplementedError, differentiated, what, naming=["unruled", *argnums])
    subject.assert_same("output", got=f(*xs), expected=polynomial.forward()[0])


@keeps("HIPS-PRIM-07")
def test_containers_are_outputs(subject, data):
    """A primitive may return a container: used entries have gradients, and the VJP gets zeros for the others."""
    polynomial = drawn_polynomial(subject, data, max_outputs=3)
    argnums = some_of(subject, data, polynomial)
    kind = subject.draw(data, ("tuple", "list", "dict"), "container")
    count = len(polynomial.outputs)
    used = subject.draw(data, st.lists(st.integers(0, count - 1), min_size=1, max_size=4), "entries used")
    keys = [f"output {o}" for o in range(count)] if kind == "dict" else list(range(count))
    packed = {"tuple": tuple, "list": list, "dict": lambda ys: dict(zip(keys, ys, strict=True))}[kind]
    arrived = []

    def maker(i, ans, xs, named):
        def rule(g):
            arrived.append([g[key] for key in keys])
            return sum(slope(polynomial, i, xs[i], o) * g[key] for o, key in enumerate(keys))

        return rule

    f = extend.primitive(lambda *xs: packed([output_function(polynomial, o)(*xs) for o in range(count)]))
    extend.defvjp_argnum(f, maker)
    given = [cotangent(subject, polynomial, o) for o in range(count)]
    # An entry that is drawn several times is added several times.
    loss = lambda *xs: sum(autograd.numpy.sum(given[o] * f(*xs)[keys[o]]) for o in used)  # noqa: E731
    got = autograd.grad(loss, argnums)(*arguments(subject, polynomial))
    cotangents = [used.count(o) * g if o in used else None for o, g in enumerate(polynomial.cotangents())]
    expected = polynomial.vjp(cotangents)
    subject.assert_all_same("gradients", got=got, expected=[np.asarray(expected[i]) for i in argnums])
    zeros = [np.any(np.asarray(g) != 0) for each in arrived for o, g in enumerate(each) if o not in used]
    subject.assert_equal("whether the gradients of unused entries differ from zero", got=any(zeros), expected=False)


@keeps("HIPS-BOX-05")
def test_no_derivative_flows_through_what_is_not_traced(subject, data):
    """A notrace_primitive gets plain values, and its result contributes no gradient."""
    polynomial = drawn_polynomial(subject, data)
    depth = subject.draw(data, st.integers(1, 3), "nested derivatives")
    f, g = primitive_with_rules(polynomial), cotangent(subject, polynomial)
    boxes = []

    def watched(*xs):
        boxes.extend(map(isbox, xs))
        return output_function(polynomial)(*xs)

    constant = autograd.tracer.notrace_primitive(watched)

    def nested(level, *xs):
        if level == 0:
            boxes.append(isbox(constant(*xs)))
            return f(*xs) + constant(*xs)
        return autograd.make_vjp(lambda *ys: nested(level - 1, *ys), polynomial.tensors)(*xs)[1]

    got = pulled(lambda *xs: nested(depth - 1, *xs), arguments(subject, polynomial), polynomial.tensors, g)
    subject.assert_all_same("gradients", got=got, expected=expected_gradients(polynomial, polynomial.tensors))
    subject.assert_equal("whether any value is a box", got=any(boxes), expected=False)
