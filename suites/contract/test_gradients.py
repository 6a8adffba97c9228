"""What backward gets and returns: number, kind, shape and dtype of gradients, and how the engine treats them."""

import itertools
from functools import partial

import numpy as np
import pytest
from hypothesis import assume
from hypothesis import strategies as st

from autograd_conformance.harness.testing.marks import keeps
from autograd_conformance.reference.polynomials import STATICS, TENSORS
from autograd_conformance.strategies.generated_functions import flags
from autograd_conformance.suites.contract._grad_and_backward import (
    argument_gradients,
    assert_refused,
    drawn_create_graph,
    drawn_way,
    gradients_of,
    replaced,
    with_changed_gradients,
    with_rule,
)
from autograd_conformance.suites.contract._graphs import sum_of_gradients
from autograd_conformance.suites.contract._inplace_and_views import drawn_preparation, with_history

# Non-tensors, which are not gradients.
OTHERS = {"number": 1.0, "integer": 0, "flag": False, "array": np.ones(3), "text": "text"}
# Shapes of surplus gradients.
EXTRA = {"tensor": (3,), "scalar tensor": (), "empty tensor": (0,)}
SMALL = ((), (1,), (3,), (0,), (2, 3), (1, 3), (3, 1), (4,), (1, 1, 1))
# How a shape is expanded: leading sizes, and the size of dimensions that were 1.
EXPANDED = st.tuples(st.lists(st.integers(0, 3), max_size=2), st.integers(1, 3)).map(lambda p: (tuple(p[0]), p[1]))


def _filled(shape):
    """Small integers, not all the same."""
    return np.asarray(np.resize([1.0, -2.0, 3.0], shape))


def _reduces_to(shape, target):
    padded = (1,) * (len(shape) - len(target)) + target
    return len(shape) >= len(target) and all(t in (1, n) for n, t in zip(shape, padded, strict=True))


def _summed(values, target):
    padded = (1,) * (values.ndim - len(target)) + target
    axes = tuple(i for i, n in enumerate(padded) if n == 1)
    return np.asarray(values.sum(axis=axes, keepdims=True)).reshape(target)


def _without(positions):
    return lambda found: tuple(None if i in positions else g for i, g in enumerate(found))


@keeps("GRAD-01", needs="none_gradients")
def test_one_argument_for_each_output(subject, data):
    """backward gets one cotangent for each output, also for outputs that are unused or not differentiable."""
    polynomial = subject.polynomial(data, max_outputs=5, separate=None, materialize=None)
    floats = [kind == "float" for kind in polynomial.outputs]
    used = subject.draw(data, flags(len(floats)).filter(lambda f: any(map(min, f, floats))), "used outputs")
    nothing = (None,) * len(polynomial.arguments)
    run = subject.run(polynomial, cls=with_rule(subject, polynomial, lambda _: nothing))
    run.gradients(polynomial.cotangents(used))
    got = run.seen.cotangents
    subject.assert_equal("number of gradients that backward gets", got=len(got), expected=len(floats))
    pairs = zip(got, polynomial.cotangents(used), strict=True)
    mine, theirs = zip(*((g, e) for g, e in pairs if e is not None), strict=True)
    subject.assert_all_same("gradients of the used outputs", got=mine, expected=theirs)


@keeps("GRAD-02")
def test_fewer_gradients_than_arguments_raise(subject, data):
    """A backward that returns too few gradients raises, and the error names both numbers."""
    polynomial = subject.polynomial(data, separate=None)
    count = len(polynomial.arguments)
    kept = subject.draw(data, range(count), "number of gradients returned")
    what = f"a backward that returns {kept} of {count} gradients"
    assert_refused(subject, data, polynomial, lambda found: found[:kept], what, "all gradients", naming=[count, kept])


@keeps("GRAD-02", variant="bare")
def test_a_bare_gradient_for_several_arguments_raises(subject, data):
    """A backward that returns one bare gradient for several arguments raises."""
    polynomial = subject.polynomial(data)
    count = len(polynomial.arguments)
    assume(count > 1)
    position = subject.draw(data, range(count), "position of the gradient returned bare")
    what = f"a backward that returns one bare value for {count} arguments"
    assert_refused(subject, data, polynomial, lambda found: found[position], what, "all gradients", naming=[count, 1])


@keeps("GRAD-03")
def test_only_none_may_be_returned_beyond_the_arguments(subject, data):
    """Extra values from backward raise unless all of them are None."""
    polynomial = subject.polynomial(data, separate=None)
    nothing = (None,) * subject.draw(data, range(3), "None before the extra value")
    tensors = {name: subject.tensor(np.zeros(shape), polynomial.dtype) for name, shape in EXTRA.items()}
    value = {**OTHERS, **tensors}[subject.draw(data, (*EXTRA, *OTHERS), "extra value")]
    count = len(polynomial.arguments)
    what, naming = (
        f"a backward that returns {type(value).__name__} beyond its gradients",
        [count, count + len(nothing) + 1],
    )
    wrong, right = (lambda found, more=more: (*found, *more) for more in ((*nothing, value), (None, *nothing)))
    assert_refused(subject, data, polynomial, wrong, what, "None beyond its gradients", right=right, naming=naming)


@keeps("GRAD-04")
def test_a_gradient_for_what_is_no_tensor_raises(subject, data):
    """Anything but None as the gradient of a non-tensor argument raises, and the error names its position."""
    polynomial = subject.polynomial(data, separate=None, arguments=("tracked", "fixed", *STATICS))
    statics = [i for i, kind in enumerate(polynomial.arguments) if kind not in TENSORS]
    assume(statics)
    position = subject.draw(data, statics, "position of the argument")
    kind = subject.draw(data, ("tensor", *OTHERS), "gradient")
    value = {**OTHERS, "tensor": subject.tensor(1.0, polynomial.dtype)}[kind]
    wrong, naming = partial(replaced, position=position, value=value), ["None", (position, position + 1)]
    what = "a gradient for an argument that is not a tensor"
    assert_refused(subject, data, polynomial, wrong, what, "None for a non-tensor argument", naming=naming)


@keeps("GRAD-05")
def test_gradients_of_fixed_tensors_are_not_looked_at(subject, data):
    """For a tensor that does not require grad, backward may return a tensor of any shape and dtype."""
    polynomial = subject.polynomial(data, separate=None, arguments=TENSORS)
    fixed = [i for i in polynomial.tensors if polynomial.arguments[i] != "tracked"]
    assume(fixed)
    dtypes = [d for d in subject.implementation.dtypes if d not in ("bool", "uint8")]
    entry = st.one_of(st.none(), st.tuples(st.sampled_from(SMALL), st.sampled_from(dtypes)))
    drawn = subject.draw(data, st.lists(entry, min_size=len(fixed), max_size=len(fixed)), "shapes and dtypes")
    made = {
        i: None if e is None else subject.implementation.array(_filled(e[0]), e[1], subject.device)
        for i, e in zip(fixed, drawn, strict=True)
    }
    way, cotangents = drawn_way(subject, data), polynomial.cotangents()
    any_shape = with_changed_gradients(
        subject, polynomial, lambda found: tuple(made.get(i, g) for i, g in enumerate(found))
    )
    got = subject.assert_accepted(
        lambda: argument_gradients(subject, way, polynomial, cotangents, any_shape), "gradients that are not needed"
    )
    subject.assert_all_same("gradients", got=got, expected=polynomial.vjp(cotangents))


@keeps("GRAD-06")
def test_none_leaves_grad_as_it_was(subject, data):
    """An input whose gradient is None keeps what its .grad held before, None or a tensor."""
    polynomial = subject.polynomial(data, arguments=("tracked", "number"))
    withheld = subject.draw(data, st.sets(st.sampled_from(polynomial.tensors), min_size=1), "inputs that get None")
    before = subject.draw(data, (None, _filled(polynomial.shape)), "what .grad holds before")
    cotangents = polynomial.cotangents()
    got = subject.implementation.backward(
        subject.call_of(polynomial, with_changed_gradients(subject, polynomial, _without(withheld))),
        subject.primals(polynomial),
        subject.tensors(cotangents, polynomial.dtype),
        track=polynomial.track,
        initial=subject.tensors([before] * len(polynomial.tensors), polynomial.dtype),
        differentiable=drawn_create_graph(subject, data),
    )
    found = _without(withheld)(polynomial.vjp(cotangents))
    expected = [sum_of_gradients(before, found[i]) for i in polynomial.tensors]
    subject.assert_all_same(".grad of the inputs", got=got, expected=expected)


@keeps("GRAD-06", variant="returned")
def test_none_comes_back_as_none(subject, data):
    """grad returns None for an input for which backward returned None."""
    polynomial = subject.polynomial(data, arguments=("tracked", "fixed", "number"))
    some = st.sets(st.sampled_from(polynomial.tracked), min_size=1)
    withheld = subject.draw(data, some, "inputs that get None")
    cotangents = polynomial.cotangents()
    run = subject.run(polynomial, cls=with_changed_gradients(subject, polynomial, _without(withheld)))
    got = run.gradients(cotangents, differentiable=drawn_create_graph(subject, data))
    subject.assert_all_same("gradients", got=got, expected=_without(withheld)(polynomial.vjp(cotangents)))


@keeps("GRAD-07")
def test_a_single_gradient_may_be_bare_or_in_a_tuple(subject, data):
    """A single gradient is accepted bare and in a tuple."""
    polynomial = subject.polynomial(data, separate=None, arguments=("tracked",), max_arguments=1)
    way, cotangents = drawn_way(subject, data), polynomial.cotangents()
    bare = with_changed_gradients(subject, polynomial, lambda found: found[0])
    got = subject.assert_accepted(
        lambda: argument_gradients(subject, way, polynomial, cotangents, bare), "a bare gradient"
    )
    subject.assert_all_same("gradients returned bare", got=got, expected=polynomial.vjp(cotangents))
    packed = argument_gradients(subject, way, polynomial, cotangents)
    subject.assert_all_same("gradients returned in a tuple", got=packed, expected=polynomial.vjp(cotangents))


@keeps("GRAD-07", variant="list")
def test_a_list_of_gradients_raises(subject, data):
    """A list of gradients raises; the same gradients in a tuple do not."""
    polynomial = subject.polynomial(data, separate=None)
    count = len(polynomial.arguments)
    naming = ["list"] if count == 1 and polynomial.tensors else [count, 1]
    assert_refused(subject, data, polynomial, list, f"a list of {count} gradients", "a tuple of them", naming=naming)


@keeps("GRAD-08")
def test_what_is_no_tensor_is_no_gradient(subject, data):
    """A number, an array or another non-tensor raises as the gradient of a tensor, and the error names its type."""
    polynomial = subject.polynomial(data, separate=None)
    position = subject.draw(data, polynomial.tracked, "position of the argument")
    others = {**OTHERS, "array of the right shape": np.ones(polynomial.shape)}
    value = others[subject.draw(data, others, "gradient")]
    wrong, naming = partial(replaced, position=position, value=value), [type(value).__name__]
    assert_refused(subject, data, polynomial, wrong, "a gradient that is not a tensor", "a tensor", naming=naming)


@keeps("GRAD-09")
def test_an_expanded_gradient_is_summed(subject, data):
    """A gradient that is larger by broadcast dimensions is summed to the shape of its input."""
    shapes = ((), (1,), (3,), (1, 3), (2, 1), (0,), (1, 1))
    polynomial = subject.polynomial(data, arguments=("tracked", "number"), shapes=shapes)
    count = len(polynomial.tensors)
    drawn = subject.draw(data, st.lists(EXPANDED, min_size=count, max_size=count), "leading sizes, and others' sizes")
    wide = [(*lead, *(size if n == 1 else n for n in polynomial.shape)) for lead, size in drawn]
    given = dict(zip(polynomial.tensors, (subject.tensor(_filled(s), polynomial.dtype) for s in wide), strict=True))
    way, cotangents = drawn_way(subject, data), polynomial.cotangents()
    cls = with_changed_gradients(subject, polynomial, lambda found: tuple(given.get(i) for i in range(len(found))))
    got = argument_gradients(subject, way, polynomial, cotangents, cls)
    sums = iter([_summed(_filled(shape), polynomial.shape) for shape in wide])
    expected = [next(sums) if need else None for need in polynomial.needs]
    subject.assert_all_same(f"sums of the gradients of shapes {wide}", got=got, expected=expected)


@keeps("GRAD-10")
def test_any_other_shape_raises(subject, data):
    """A gradient that cannot be summed to its input's shape raises, also one that could be broadcast to it."""
    polynomial = subject.polynomial(data, separate=None, shapes=SMALL[1:])
    position = subject.draw(data, polynomial.tracked, "position of the argument")
    shapes = [s for s in (*SMALL, (2,), (3, 2), (2, 3, 1)) if not _reduces_to(s, polynomial.shape)]
    broadcast, empty = [s for s in shapes if _reduces_to(polynomial.shape, s)], [s for s in shapes if 0 in s]
    some = st.one_of([st.sampled_from(group) for group in (shapes, broadcast, empty) if group])
    shape = subject.draw(data, some, "shape of the gradient")
    value = subject.tensor(_filled(shape), polynomial.dtype)
    wrong = partial(replaced, position=position, value=value)
    what = f"a gradient of shape {shape} for an input of shape {polynomial.shape}"
    naming = [(position, position + 1, polynomial.tensors.index(position))]
    assert_refused(subject, data, polynomial, wrong, what, "a gradient of the input's shape", naming=naming)


@keeps("GRAD-11")
def test_gradients_take_the_dtype_of_their_inputs(subject, data):
    """Real, integer and bool gradients are cast to the dtype of their input."""
    implementation = subject.implementation
    polynomial = subject.polynomial(data, arguments=("tracked", "number"))
    real = [d for d in implementation.dtypes if not d.startswith("complex")]
    count = len(polynomial.tensors)
    dtypes = subject.draw(data, st.lists(st.sampled_from(real), min_size=count, max_size=count), "gradients' dtypes")
    values = np.asarray(np.resize([1, 0, 1], polynomial.shape))
    made = [implementation.array(values, dtype, subject.device) for dtype in dtypes]
    given = dict(zip(polynomial.tensors, made, strict=True))
    cls = with_changed_gradients(subject, polynomial, lambda found: tuple(given.get(i) for i in range(len(found))))
    got = argument_gradients(subject, drawn_way(subject, data), polynomial, polynomial.cotangents(), cls)
    found = [g for g in got if g is not None]
    found_dtypes = [implementation.describe(g).dtype for g in found]
    subject.assert_equal("dtypes of the gradients", got=found_dtypes, expected=[polynomial.dtype] * count)
    subject.assert_all_same("gradients", got=found, expected=[values.astype("float64")] * count)


@keeps("GRAD-12")
def test_a_complex_gradient_of_a_real_input_raises(subject, data):
    """A complex gradient of a real input raises, also if its imaginary part is zero."""
    polynomial = subject.polynomial(data, separate=None)
    position = subject.draw(data, polynomial.tracked, "position of the argument")
    names = [d for d in subject.implementation.dtypes if d.startswith("complex")]
    if not names:
        pytest.skip("there are no complex dtypes")
    dtype = subject.draw(data, names, "dtype of the gradient")
    imaginary = subject.draw(data, (0.0, 1.0), "imaginary part")
    values = _filled(polynomial.shape)
    value = subject.implementation.array(values + 1j * imaginary, dtype, subject.device)
    real = subject.tensor(values, polynomial.dtype)
    wrong, right = (partial(replaced, position=position, value=g) for g in (value, real))
    what, expected = "a complex gradient for a real input", right(polynomial.vjp(polynomial.cotangents()), value=values)
    assert_refused(
        subject, data, polynomial, wrong, what, "a real gradient in its place", right=right, expected=expected
    )


@keeps("GRAD-14")
def test_cotangents_keep_their_values(subject, data):
    """A backward pass leaves the values of the caller's cotangents alone, even if each is given for two outputs."""
    polynomial = subject.polynomial(data, arguments=("tracked", "number"), outputs=("float",))
    way = drawn_way(subject, data)
    rules = {
        "gradients of its own": None,
        "what it got": with_rule(
            subject, polynomial, lambda got: tuple(got[-1] if n else None for n in polynomial.needs)
        ),
    }
    cls = rules[subject.draw(data, rules, "returned by backward")]
    expected = polynomial.cotangents()
    given = subject.tensors(expected, polynomial.dtype)
    f = subject.call_of(polynomial, cls)
    # Each cotangent is given twice: what is summed of it, or of the gradients that it gives, must be a new tensor.
    again = {
        "outputs of another call": lambda xs, ys: f(*xs),
        "the same outputs": lambda xs, ys: ys,
        "results of the outputs": lambda xs, ys: map(with_history, ys),
    }
    second = again[subject.draw(data, again, "what it is given for in addition to the outputs")]

    def both(*xs):
        ys = f(*xs)
        return *ys, *second(xs, ys)

    gradients_of(subject, way, both, subject.primals(polynomial), (*given, *given), polynomial.track)
    subject.assert_all_same("cotangents after the pass", got=given, expected=expected)


@keeps("GRAD-15", needs="views")
def test_leaves_share_no_gradient(subject, data):
    """The .grad fields share no memory with each other or the cotangent if backward returns what it got."""
    implementation = subject.implementation
    shapes = ((), (1,), (3,), (2, 3))
    polynomial = subject.polynomial(data, arguments=("tracked",), outputs=("float",), shapes=shapes)
    befores = st.sampled_from((None, _filled(polynomial.shape)))
    count = len(polynomial.tensors)
    held = subject.draw(data, st.lists(befores, min_size=count, max_size=count), "what .grad holds before")
    f = subject.call_of(polynomial, with_rule(subject, polynomial, lambda got: got[-1:] * count))
    cotangents = polynomial.cotangents()
    given = subject.tensors(cotangents, polynomial.dtype)
    initial = subject.tensors(held, polynomial.dtype)
    got = implementation.backward(f, subject.primals(polynomial), given, track=polynomial.track, initial=initial)
    expected = [sum_of_gradients(before, cotangents[-1]) for before in held]
    subject.assert_all_same(".grad of the leaves", got=got, expected=expected)
    shared = sum(implementation.shares_memory(a, b) for a, b in itertools.combinations([*got, *given], 2))
    subject.assert_equal("number of pairs of .grad fields and cotangents that share memory", got=shared, expected=0)


@keeps("GRAD-15", variant="returned")
def test_a_gradient_may_be_handed_on_as_it_is(subject, data):
    """A backward may return the cotangent itself for several arguments."""
    polynomial = subject.polynomial(data, arguments=("tracked",), outputs=("float",), separate=None)
    count, cotangents = len(polynomial.arguments), polynomial.cotangents()
    cls = with_rule(subject, polynomial, lambda got: got[:1] * count)
    got = subject.assert_accepted(lambda: subject.run(polynomial, cls=cls).gradients(cotangents), "the gradient itself")
    subject.assert_all_same("gradients", got=got, expected=cotangents[:1] * count)


@keeps("GRAD-16")
def test_a_tensor_passed_twice_gets_the_sum(subject, data):
    """A tensor at several positions gets the sum of the gradients of those positions."""
    polynomial = subject.polynomial(data, arguments=("tracked", "tracked", "number"), powers=(1,))
    positions = polynomial.tensors
    entries = st.lists(st.integers(0, 1), min_size=len(positions), max_size=len(positions))
    which = subject.draw(data, entries, "leaf passed at each position")
    way, cotangents = drawn_way(subject, data), polynomial.cotangents()
    leaves = [subject.tensor(_filled(polynomial.shape), polynomial.dtype) for _ in range(2)]
    most = len(positions) if "none_gradients" in subject.implementation.capabilities else 0
    withheld = subject.draw(data, st.sets(st.sampled_from(positions), max_size=most), "positions that get None")
    f = subject.call_of(polynomial, with_changed_gradients(subject, polynomial, _without(withheld)))
    prepare = drawn_preparation(subject, data)

    def repeated(*xs):
        given = [prepare(x) for x in xs]
        return f(*(given[k] for k in which))

    got = gradients_of(subject, way, repeated, leaves, subject.tensors(cotangents, polynomial.dtype))
    each = _without(withheld)(polynomial.vjp(cotangents))
    pairs = [(each[i], k) for i, k in zip(positions, which, strict=True)]
    parts = [[g for g, k in pairs if k == leaf and g is not None] for leaf in range(2)]
    expected = [np.asarray(np.sum(part, axis=0)) if part else None for part in parts]
    expected = subject.returned(expected, polynomial.shape)
    subject.assert_all_same("gradients of the leaves", got=got, expected=expected)
